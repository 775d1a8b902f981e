// Counts what queues have had of the devices, in an account of their user and in one of their process; and
// their requests, as far as there is room, for each queue by itself.
//
// It makes no queue report anything, and costs a touched queue a few comparisons: times are taken from what
// the scheduler has charged, when somebody asks or when they go to another account.
//
// Pure; statistics and time in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <utility>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/agent.h"
#include "server/queue_times.h"
#include "server/subordinate_users.h"
#include "server/usage.h"

namespace xsched::server {

class UsageMeter {
 public:
  // Stands for all users beyond the limit.
  static constexpr uid_t kOtherUsers = static_cast<uid_t>(-1);

  explicit UsageMeter(SubordinateUsers subordinates = {}) : times_(std::move(subordinates)) {}
  UsageMeter(const UsageMeter&) = delete;
  UsageMeter& operator=(const UsageMeter&) = delete;

  // From now on the queue is counted. `stats`: what it had before, which does not count. It gets its accounts
  // with its first work, because programs set its priority before that.
  static void Add(Queue& queue, const sched::QueueStats& stats) noexcept;
  // It gets them now.
  void Open(Queue& queue) noexcept;
  // Something of the queue may have changed.
  void See(Queue& queue, const sched::QueueStats& stats, TimePoint now) noexcept;
  // Brings its accounts up to date, if it has them.
  static void Settle(Queue& queue, const sched::QueueStats& stats) noexcept;
  // The queue is about to be forgotten. What it had stays in the accounts.
  void Remove(Queue& queue, const sched::QueueStats& stats) noexcept;
  // How many requests no queue has by itself, because too many queues have theirs.
  uint64_t requests_without_queue() const { return requests_without_queue_; }

  // The first account behind that one, by user; `from` is null: the first of all. A null account: there are
  // no more.
  struct Position {
    uid_t uid = 0;
    Accounts::Entry entry{};
  };
  Position After(const Position* from) const;
  // In front of the user's first account.
  static Position Before(uid_t user);

 private:
  Accounts& Of(uid_t user) noexcept;
  void SeeRequest(Queue& queue, const sched::QueueStats& stats, TimePoint now) noexcept;
  RequestTimes* TimesOf(Queue& queue) noexcept;

  std::map<uid_t, Accounts> users_;  // also those that are gone, for what has been counted must stay
  Accounts others_{0};
  QueueTimes times_;
  uint64_t requests_without_queue_ = 0;
};

}  // namespace xsched::server
