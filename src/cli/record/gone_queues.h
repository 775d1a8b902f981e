// Which queues of a recording have gone, the last few thousand. A hold that ends with a queue names it right
// after its end, and nothing names it later: so it can be forgotten, however long the recording goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace xsched::cli {

class GoneQueues {
 public:
  static constexpr size_t kMost = 4096;

  // Returns the queue that can be forgotten now.
  std::optional<uint64_t> Add(uint64_t queue) {
    queues_.push_back(queue);
    if (queues_.size() <= kMost) return std::nullopt;
    const uint64_t oldest = queues_.front();
    queues_.pop_front();
    return oldest;
  }

 private:
  std::deque<uint64_t> queues_;
};

}  // namespace xsched::cli
