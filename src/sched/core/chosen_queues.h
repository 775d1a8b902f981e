// Since when queues of a process or tenant run by the policy's choice (QueueRecord::was_chosen).
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace xsched::sched {

class ChosenQueues {
 public:
  bool any() const { return count_ != 0; }
  // Valid while there are any: since when there was one without a break. It is no break if one decision lets
  // another queue run instead.
  TimePoint since() const { return since_; }

  void Add(TimePoint now) {
    if (count_++ == 0 && now != ended_at_) since_ = now;
  }
  void Remove(TimePoint now) {
    if (--count_ == 0) ended_at_ = now;
  }
  // Those of a process come to this tenant, or leave it for another one.
  void Join(const ChosenQueues& process) {
    if (count_ == 0) since_ = process.since_;
    count_ += process.count_;
  }
  void Leave(const ChosenQueues& process) { count_ -= process.count_; }

 private:
  size_t count_ = 0;
  TimePoint since_{};
  TimePoint ended_at_ = kNever;  // when there were none any more
};

}  // namespace xsched::sched
