// Commands, one JSON object each: from the program's arguments, or, without any, lines of standard input as
// they come.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

namespace xsched::bench {

class Commands {
 public:
  Commands(int argc, char** argv);

  // The next command; nothing: that was all.
  std::optional<nlohmann::json> Next();
  // What runs until it is told otherwise ends with the next line, or the end of the input.
  bool Interrupted() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  void Read();

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
  bool ended_ = false;
  std::atomic<int> waiting_{0};  // lines, and the end
  std::thread reader_;
};

}  // namespace xsched::bench
