// The order in which top shows the queues, and the selected one. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "cli/top/rates.h"

namespace xsched::cli {

enum class Order { kDevice, kPriority, kCommands, kWaiting, kPid };
inline constexpr int kOrderCount = 5;
inline constexpr const char* kOrderNames[kOrderCount] = {"device share", "priority", "commands/s", "waiting",
                                                         "pid"};

inline Order NextOrder(Order order) {
  return static_cast<Order>((static_cast<int>(order) + 1) % kOrderCount);
}

// The largest first, except for pids: the smallest first. Equal queues stay in the order of their ids.
inline void Sort(std::vector<QueueRates>& queues, Order order) {
  auto key = [order](const QueueRates& entry) -> double {
    switch (order) {
      case Order::kPriority:
        return entry.queue.hints.priority;
      case Order::kCommands:
        return entry.commands_per_s;
      case Order::kWaiting:
        return entry.waiting_share;
      case Order::kPid:
        return -entry.queue.pid;
      case Order::kDevice:
        return entry.device_share;
    }
    return 0;
  };
  std::sort(queues.begin(), queues.end(), [&](const QueueRates& a, const QueueRates& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.queue.queue_id < b.queue.queue_id;
  });
}

// The selection is a queue, not a row: it stays with its queue when the order changes.
class Selection {
 public:
  // The row of the selected queue, or of the nearest one if that has gone. −1: there are no queues.
  int Row(const std::vector<QueueRates>& queues) {
    if (queues.empty()) return row_ = -1;
    for (size_t i = 0; i < queues.size(); ++i) {
      if (queues[i].queue.queue_id == queue_id_) return row_ = static_cast<int>(i);
    }
    return Select(queues, row_);
  }
  int Move(const std::vector<QueueRates>& queues, int by) {
    int row = Row(queues);
    return row < 0 ? row : Select(queues, row + by);
  }

 private:
  // REQUIRES: there are queues.
  int Select(const std::vector<QueueRates>& queues, int row) {
    size_t index = std::min(static_cast<size_t>(std::max(row, 0)), queues.size() - 1);
    queue_id_ = queues[index].queue.queue_id;
    return row_ = static_cast<int>(index);
  }

  uint64_t queue_id_ = 0;
  int row_ = 0;
};

}  // namespace xsched::cli
