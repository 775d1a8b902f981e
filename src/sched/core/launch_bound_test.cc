// Programs that launch more slowly than the device works, in virtual time: others run in their gaps.
#include "sched/core/launch_bound.h"

#include <gtest/gtest.h>

#include "sched/core/scheduler.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr QueueId kUrgent{9};
constexpr QueueId kOther{1};
constexpr DeviceId kDevice{7};

class LaunchBoundTest : public testing::Test {
 protected:
  void Add(QueueId id, Priority priority, ProcessId process, bool sliceable = true) {
    Hints hints;
    hints.priority = priority;
    ASSERT_TRUE(scheduler_.AddQueue(id, process, kDevice, hints, now_, {.sliceable = sliceable}));
  }
  void Add(QueueId id, Priority priority) { Add(id, priority, ProcessId{static_cast<uint64_t>(id)}); }
  void AddBoth() {
    Add(kUrgent, 5);
    Add(kOther, 0);
  }
  void Work(QueueId id) { scheduler_.Progress(id, 1000, 0, now_); }
  void Launch() {
    ++launched_;
    scheduler_.Progress(kUrgent, launched_, launched_ - 1, now_);
  }
  // Time passes. The urgent program always launches the next command. Of `of` queries, `idle` find the device
  // idle.
  void Pass(Duration time, int idle, int of) {
    const TimePoint end = now_ + time;
    TimePoint next = scheduler_.Decide(now_, sink_);
    while (next <= end) {
      now_ = std::max(now_, next);
      const int before = sink_.queries[kUrgent];
      next = scheduler_.Decide(now_, sink_);
      if (sink_.queries[kUrgent] == before) continue;
      if (++asked_ % of < idle) {
        now_ += microseconds(30);
        scheduler_.Progress(kUrgent, launched_, launched_, now_);
        scheduler_.FoundIdle(kUrgent, ++found_idle_, now_);
        scheduler_.Decide(now_, sink_);
        Launch();
      }
      next = scheduler_.Decide(now_, sink_);
    }
    now_ = end;
  }
  // For how much of the time the queue runs, in percent.
  double RunsFor(QueueId id, Duration time, int idle, int of) {
    constexpr Duration kStep = microseconds(100);
    int64_t runs = 0;
    for (Duration passed{}; passed < time; passed += kStep) {
      Pass(kStep, idle, of);
      runs += Runs(id);
    }
    return 100.0 * static_cast<double>(runs) / static_cast<double>(time / kStep);
  }
  bool Runs(QueueId id) const { return sink_.Of(id).run; }
  Duration SliceOf(QueueId id) { return sink_.SliceOf(ProcessId{static_cast<uint64_t>(id)}, kDevice); }

  Scheduler scheduler_{SchedulerConfig{}};
  Recorder sink_;
  TimePoint now_{milliseconds(100)};
  uint64_t launched_ = 0;
  uint32_t found_idle_ = 0;
  int asked_ = 0;
};

TEST_F(LaunchBoundTest, others_run_in_the_gaps_in_short_slices) {
  AddBoth();
  Work(kOther);
  Launch();
  Pass(milliseconds(1), 3, 4);
  EXPECT_FALSE(Runs(kOther)) << "too early to know";
  EXPECT_EQ(SliceOf(kOther), kShortestSlice);
  Pass(milliseconds(30), 3, 4);
  EXPECT_TRUE(Runs(kOther));
  EXPECT_TRUE(Runs(kUrgent));
  EXPECT_EQ(SliceOf(kOther), microseconds(500));
  EXPECT_EQ(SliceOf(kUrgent), milliseconds(100)) << "it has the device as soon as it has work there";
  EXPECT_GT(RunsFor(kOther, milliseconds(2000), 3, 4), 95);
}

TEST_F(LaunchBoundTest, a_queue_that_keeps_the_device_at_work_holds_the_others) {
  AddBoth();
  Work(kOther);
  Launch();
  EXPECT_EQ(RunsFor(kOther, milliseconds(70), 0, 1), 0);
  EXPECT_EQ(RunsFor(kOther, milliseconds(500), 1, 4), 0) << "now and then, the device has finished";
  EXPECT_EQ(SliceOf(kOther), kShortestSlice);
}

// It serves requests. Each query finds the device idle before the program has noticed that it has finished.
TEST_F(LaunchBoundTest, a_program_that_pauses_after_each_command_is_not_bound) {
  AddBoth();
  Work(kOther);
  for (int request = 0; request < 100; ++request) {
    Launch();
    Pass(microseconds(100), 0, 1);
    ASSERT_FALSE(Runs(kOther)) << request;
    const int before = sink_.queries[kUrgent];
    Pass(microseconds(150), 0, 1);
    ASSERT_GT(sink_.queries[kUrgent], before);
    scheduler_.Progress(kUrgent, launched_, launched_, now_);
    scheduler_.FoundIdle(kUrgent, ++found_idle_, now_);
    Pass(milliseconds(20), 0, 1);
  }
}

TEST_F(LaunchBoundTest, what_follows_soon_makes_a_gap) {
  LaunchBound queue;
  TimePoint now{milliseconds(1)};
  auto sample = [&](bool soon) {
    queue.Asked(now);
    queue.FoundIdle();
    return queue.Resumed(soon, now);
  };
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(sample(false));
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(sample(true));
  EXPECT_TRUE(sample(true));
  EXPECT_TRUE(queue.LeavesGaps(now));
}

TEST_F(LaunchBoundTest, when_it_is_not_so_any_more_the_others_are_held_again) {
  AddBoth();
  Work(kOther);
  Launch();
  Pass(milliseconds(30), 1, 1);
  ASSERT_TRUE(Runs(kOther));
  Pass(milliseconds(200), 1, 4);
  EXPECT_FALSE(Runs(kOther));
  EXPECT_EQ(SliceOf(kOther), kShortestSlice);
  EXPECT_EQ(RunsFor(kOther, milliseconds(500), 1, 4), 0);
}

TEST_F(LaunchBoundTest, only_the_next_priority_runs_in_the_gaps) {
  AddBoth();
  constexpr QueueId kLowest{2};
  Add(kLowest, -1);
  Work(kOther);
  Work(kLowest);
  Launch();
  Pass(milliseconds(30), 1, 1);
  EXPECT_TRUE(Runs(kOther));
  EXPECT_FALSE(Runs(kLowest));
}

TEST_F(LaunchBoundTest, several_others_take_turns_in_the_gaps) {
  AddBoth();
  constexpr QueueId kEqual{2};
  Add(kEqual, 0);
  Work(kOther);
  Work(kEqual);
  Launch();
  Pass(milliseconds(30), 1, 1);
  EXPECT_TRUE(Runs(kOther) && Runs(kEqual));
  const bool first_is_on = SliceOf(kOther) != kNoSlice;
  EXPECT_EQ(SliceOf(first_is_on ? kOther : kEqual), microseconds(500));
  EXPECT_EQ(SliceOf(first_is_on ? kEqual : kOther), kNoSlice);
}

// The device does not divide its time there, so what is launched ahead would make the urgent queue wait.
TEST_F(LaunchBoundTest, queues_of_its_own_process_are_held) {
  Add(kUrgent, 5, ProcessId{3});
  Add(kOther, 0, ProcessId{3});
  Add(QueueId{2}, 0, ProcessId{4});
  Work(kOther);
  Work(QueueId{2});
  Launch();
  EXPECT_EQ(RunsFor(kOther, milliseconds(70), 1, 1), 0);
  EXPECT_FALSE(Runs(QueueId{2}));
}

TEST_F(LaunchBoundTest, without_time_slices_the_others_are_held) {
  Add(kUrgent, 5, ProcessId{3}, false);
  Add(kOther, 0, ProcessId{4}, false);
  Work(kOther);
  Launch();
  EXPECT_EQ(RunsFor(kOther, milliseconds(70), 1, 1), 0);
}

TEST_F(LaunchBoundTest, a_policy_that_others_follow_holds_them) {
  scheduler_.SetPolicy(*ParsePolicySetting("HPF/EEVDF:process"));
  AddBoth();
  Work(kOther);
  Launch();
  EXPECT_EQ(RunsFor(kOther, milliseconds(70), 1, 1), 0);
}

TEST_F(LaunchBoundTest, it_is_tried_again_ever_less_often) {
  LaunchBound queue;
  TimePoint now{milliseconds(1)};
  auto sample = [&](bool idle) {
    bool changed = queue.Asked(now);
    if (idle) queue.FoundIdle();
    changed |= queue.Resumed(true, now);
    return changed;
  };
  for (Duration period : {milliseconds(100), milliseconds(200), milliseconds(400)}) {
    int samples = 1;
    while (!sample(true)) ++samples;
    EXPECT_EQ(samples, 16);
    EXPECT_EQ(queue.until(), now + period);
    EXPECT_FALSE(queue.LeavesGaps(now + period));
    now += period;
  }
  EXPECT_TRUE(queue.is_bound());
  while (!sample(false)) {
  }
  EXPECT_FALSE(queue.is_bound());
  EXPECT_FALSE(queue.LeavesGaps(now));
}

}  // namespace
}  // namespace xsched::sched
