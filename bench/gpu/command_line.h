// Reads commands. Each is a JSON object, from the program's arguments or, without any, from a line of
// standard input.
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

  // The next command; nullopt: there are no more.
  std::optional<nlohmann::json> Next();
  // True if there is a further line or the end of the input. Commands that run without an end then stop.
  bool Interrupted() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  void Read();

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
  bool ended_ = false;
  std::atomic<int> waiting_{0};  // unread lines, and the end of the input
  std::thread reader_;
};

}  // namespace xsched::bench
