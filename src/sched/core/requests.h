// Since when a queue has its oldest unfinished work. Deadlines, laxities and latency targets count from then.
//
// All that the scheduler knows are two counters: how many commands were submitted, and how many have retired.
// Where one request ends and the next one begins, it can only infer:
//
//  - A queue that was idle begins a request.
//  - A queue that always has work ends a request when all is done that had been submitted at the request's
//    beginning. The next request came when more than that was submitted.
//  - A short pause (the queue lingers, scheduler.h) may be within a request or between two. While the request
//    is in time, it is taken as a part of it. Otherwise a program that waits for each of its commands could
//    put its deadline off at each of them. If the request is late, the pause ends it. Otherwise a program
//    that always has the next request at hand would be late for ever.
//
// Pure.
#pragma once

#include <cstdint>

#include "sched/core/types.h"

namespace xsched::sched {

class Requests {
 public:
  TimePoint since() const { return since_; }

  // The queue was idle, and has work.
  void Begin(uint64_t submitted, TimePoint now) {
    since_ = now;
    last_ = submitted;
    next_since_ = kNever;
  }
  // The queue has work again after a short pause.
  void Resume(uint64_t submitted, const Hints& hints, TimePoint now) {
    Begin(submitted, now - since_ >= LateAfter(hints) ? now : since_);
  }
  // The queue had work before, and still has some. Returns true if its oldest work is of another request now.
  bool Continue(uint64_t submitted, uint64_t retired, TimePoint now) {
    if (next_since_ == kNever && submitted > last_) next_since_ = now;
    if (retired < last_ || next_since_ == kNever) return false;
    Begin(submitted, next_since_);
    return true;
  }

 private:
  static Duration LateAfter(const Hints& hints) {
    int64_t time_us = hints.deadline_us >= 0 ? hints.deadline_us : hints.laxity_us;
    if (time_us < 0 && hints.latency_target_us > 0) time_us = hints.latency_target_us;
    return time_us >= 0 ? std::chrono::microseconds(time_us) : Duration::max();
  }

  TimePoint since_{};
  uint64_t last_ = 0;              // the number of the request's last command
  TimePoint next_since_ = kNever;  // when a later one was first seen; kNever: there is none
};

}  // namespace xsched::sched
