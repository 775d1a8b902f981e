#include "command_line.h"

#include <iostream>

namespace xsched::bench {

Commands::Commands(int argc, char** argv) {
  if (argc > 1) {
    lines_.assign(argv + 1, argv + argc);
    ended_ = true;
    return;
  }
  reader_ = std::thread([this] { Read(); });
  // It may be blocked in a read, and ends with the process.
  reader_.detach();
}

void Commands::Read() {
  for (std::string line; std::getline(std::cin, line);) {
    std::lock_guard lock(mutex_);
    lines_.push_back(line);
    waiting_.fetch_add(1, std::memory_order_relaxed);
    arrived_.notify_one();
  }
  std::lock_guard lock(mutex_);
  ended_ = true;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  arrived_.notify_one();
}

std::optional<nlohmann::json> Commands::Next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !lines_.empty() || ended_; });
  if (lines_.empty()) return std::nullopt;
  std::string line = lines_.front();
  lines_.pop_front();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return nlohmann::json::parse(line);
}

}  // namespace xsched::bench
