// How long the requests of single queues took, for metrics. Programs make as many queues as they like, so
// only a limited number of them is counted by itself: a queue from its first request on, if there is room,
// until it is gone.
//
// Pure.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "sched/core/types.h"
#include "server/limits.h"
#include "server/subordinate_users.h"
#include "server/usage.h"

namespace xsched::server {

class QueueTimes {
 public:
  struct Limits {
    size_t of_user = kMaxTimedQueuesOfUser;
    size_t of_all = kMaxTimedQueues;
  };
  explicit QueueTimes(SubordinateUsers subordinates = {}) : QueueTimes(Limits{}, std::move(subordinates)) {}
  explicit QueueTimes(const Limits& limits, SubordinateUsers subordinates = {})
      : limits_(limits), subordinates_(std::move(subordinates)) {}
  QueueTimes(const QueueTimes&) = delete;
  QueueTimes& operator=(const QueueTimes&) = delete;

  // Counts this queue of the user from now on. It stays where it is until Remove. Null: too many queues are
  // counted, or memory runs out.
  RequestTimes* Add(sched::QueueId queue, uid_t user) noexcept;
  // The queue is gone.
  void Remove(sched::QueueId queue) noexcept;

 private:
  struct Timed {
    uid_t owner;
    RequestTimes times;
  };

  const Limits limits_;
  const SubordinateUsers subordinates_;
  std::unordered_map<uint64_t, Timed> queues_;
  std::unordered_map<uid_t, size_t> of_owners_;  // how many queues each of them has
};

}  // namespace xsched::server
