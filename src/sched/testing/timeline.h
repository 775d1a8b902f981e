// A scheduler in virtual time, for tests. It decides whenever it has asked for it. A queue and its process
// have the same number unless a test gives another.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "sched/core/scheduler.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {

class Timeline : public testing::Test {
 protected:
  static constexpr uint64_t kGpu = 7;

  void Add(uint64_t id, Priority priority, uint64_t device = kGpu, uint64_t process = 0) {
    Hints hints;
    hints.priority = priority;
    ASSERT_TRUE(scheduler_.AddQueue(QueueId{id}, ProcessId{process == 0 ? id : process}, DeviceId{device},
                                    hints, now_, {.sliceable = sliceable_}));
    device_of_[id] = device;
    Decide();
  }
  void Progress(uint64_t id, uint64_t submitted, uint64_t retired) {
    retired_[id] = retired;
    scheduler_.Progress(QueueId{id}, submitted, retired, now_);
    Decide();
  }
  // It has work without end.
  void Busy(uint64_t id) { Progress(id, kEndless, retired_[id]); }
  void RetireOne(uint64_t id) { Progress(id, kEndless, retired_[id] + 1); }
  void Finish(uint64_t id) { Progress(id, kEndless, kEndless); }
  void SetAbsent(uint64_t id, bool absent) {
    scheduler_.SetAbsent(QueueId{id}, absent, now_);
    Decide();
  }
  void Decide() { ask_at_ = scheduler_.Decide(now_, sink_); }
  void Pass(Duration time) {
    const TimePoint end = now_ + time;
    for (int rounds = 0; ask_at_ <= end; ++rounds) {
      ASSERT_LT(rounds, 100000) << "the scheduler's timers do not come to rest";
      now_ = std::max(now_, ask_at_);
      Decide();
    }
    now_ = end;
  }

  bool Runs(uint64_t id) const { return sink_.Of(QueueId{id}).run; }
  Duration SliceOf(uint64_t id) { return sink_.SliceOf(ProcessId{id}, DeviceId{device_of_[id]}); }
  bool IsOff(uint64_t id) { return SliceOf(id) == kNoSlice; }
  QueueStats StatsOf(uint64_t id) { return *scheduler_.Stats(QueueId{id}, now_); }
  int Queries(uint64_t id) { return sink_.queries[QueueId{id}]; }

  static constexpr uint64_t kEndless = 1'000'000'000;

  Scheduler scheduler_{SchedulerConfig{}};
  Recorder sink_;
  TimePoint now_{std::chrono::milliseconds(1)};
  TimePoint ask_at_ = kNever;
  bool sliceable_ = true;  // of queues that are added
  std::map<uint64_t, uint64_t> retired_;
  std::map<uint64_t, uint64_t> device_of_;
};

}  // namespace xsched::sched
