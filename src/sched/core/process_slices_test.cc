// Level 3 in virtual time: which process has which slice, and whose turn it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sched/core/scheduler.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class ProcessSlicesTest : public testing::Test {
 protected:
  // Queue and process have the same number.
  void Add(uint64_t id, Priority priority, Utilization utilization = 100, bool sliceable = true) {
    Hints hints;
    hints.priority = priority;
    hints.utilization = utilization;
    scheduler_.AddQueue(QueueId{id}, ProcessId{id}, DeviceId{7}, hints, now_, {.sliceable = sliceable});
  }
  void AddTo(ProcessId process, uint64_t id, Priority priority) {
    Hints hints;
    hints.priority = priority;
    scheduler_.AddQueue(QueueId{id}, process, DeviceId{7}, hints, now_, {.sliceable = true});
  }
  void Work(uint64_t id) {
    ++submitted_;
    scheduler_.Progress(QueueId{id}, submitted_, submitted_ - 1, now_);
  }
  void Finish(uint64_t id) { scheduler_.Progress(QueueId{id}, submitted_, submitted_, now_); }
  TimePoint Decide() { return scheduler_.Decide(now_, sink_); }
  Duration SliceOf(uint64_t id) { return sink_.slices[ProcessId{id}]; }
  bool Runs(uint64_t id) { return sink_.Of(QueueId{id}).run; }

  TimePoint now_{milliseconds(100)};
  uint64_t submitted_ = 0;
  Recorder sink_;
  Scheduler scheduler_{SchedulerConfig{}};
};

TEST_F(ProcessSlicesTest, the_most_urgent_process_has_a_long_one_and_the_others_the_shortest) {
  Add(1, 0);
  Add(2, 5);
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_EQ(SliceOf(2), milliseconds(100));
}

TEST_F(ProcessSlicesTest, equals_keep_the_drivers) {
  Add(1, 3);
  Add(2, 3);
  Decide();
  EXPECT_EQ(sink_.slice_changes, 0);
  Add(3, 9);
  Add(4, 9);
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_EQ(SliceOf(3), kDriversSlice) << "two urgent ones share";
}

TEST_F(ProcessSlicesTest, tasks_that_come_and_go_change_none) {
  Add(1, 0);
  Add(2, 5);
  Decide();
  int changes = sink_.slice_changes;
  for (int task = 0; task < 10; ++task) {
    Work(2);
    Decide();
    scheduler_.Progress(QueueId{2}, submitted_, submitted_, now_);
    now_ += milliseconds(1);
    Decide();
  }
  EXPECT_EQ(sink_.slice_changes, changes);
}

TEST_F(ProcessSlicesTest, a_pause_that_is_not_worth_two_changes_between_processes_makes_none) {
  Add(1, 0);
  Add(2, 5);
  Work(1);
  Work(2);
  Decide();
  Finish(2);
  EXPECT_EQ(Decide(), now_ + milliseconds(1));
  now_ += microseconds(999);
  Decide();
  EXPECT_FALSE(Runs(1));
  now_ += microseconds(1);
  Decide();
  EXPECT_TRUE(Runs(1));
}

TEST_F(ProcessSlicesTest, a_pause_in_which_its_own_queues_could_run_makes_a_process_linger_for_less) {
  Add(1, 0);
  Add(2, 5);
  AddTo(ProcessId{2}, 3, 0);
  Work(3);
  Work(2);
  Decide();
  Finish(2);
  EXPECT_EQ(Decide(), now_ + microseconds(200));
}

TEST_F(ProcessSlicesTest, a_pause_of_a_process_that_nobody_waits_for_is_short) {
  Add(1, 0);
  Add(2, 5);
  Work(1);
  Decide();
  Finish(1);
  EXPECT_EQ(Decide(), now_ + microseconds(200));
}

TEST_F(ProcessSlicesTest, a_pause_in_a_turn_that_is_not_worth_two_changes_between_processes_makes_none) {
  Add(1, 0);
  Add(2, 0);
  Add(3, 5);
  Work(1);
  Decide();
  Work(2);
  Decide();
  ASSERT_EQ(SliceOf(2), kNoSlice);
  Finish(1);
  Decide();
  now_ += microseconds(999);
  Decide();
  EXPECT_EQ(SliceOf(2), kNoSlice) << "another one waits, and would have to give the device back at once";
  now_ += microseconds(1);
  Decide();
  EXPECT_EQ(SliceOf(2), kShortestSlice);
}

TEST_F(ProcessSlicesTest, the_last_process_has_the_drivers_slice_again) {
  Add(1, 0);
  Add(2, 5);
  Decide();
  scheduler_.RemoveQueue(QueueId{2}, now_);
  now_ = Decide();
  ASSERT_NE(now_, kNever);
  Decide();
  EXPECT_EQ(SliceOf(1), kDriversSlice);
}

TEST_F(ProcessSlicesTest, are_given_back_at_once_when_the_most_urgent_process_has_ended) {
  Add(1, 0);
  Add(2, 0);
  Add(3, 5);
  for (uint64_t id : {1, 2}) Work(id);
  Decide();
  ASSERT_EQ(SliceOf(1), kShortestSlice);
  ASSERT_EQ(SliceOf(2), kNoSlice);
  scheduler_.RemoveQueue(QueueId{3}, now_);
  scheduler_.RemoveProcess(ProcessId{3});
  Decide();
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
}

TEST_F(ProcessSlicesTest, streams_that_come_and_go_change_none) {
  Add(1, 0);
  Add(2, 5);
  Decide();
  int changes = sink_.slice_changes;
  for (uint64_t id = 3; id < 20; ++id) {
    scheduler_.RemoveQueue(QueueId{id - 1}, now_);
    Decide();
    now_ += milliseconds(100);
    Hints hints;
    hints.priority = 5;
    scheduler_.AddQueue(QueueId{id}, ProcessId{2}, DeviceId{7}, hints, now_, {.sliceable = true});
    Decide();
  }
  EXPECT_EQ(sink_.slice_changes, changes);
}

TEST_F(ProcessSlicesTest, are_given_back_by_processes_that_have_no_queues_left) {
  Add(1, 0);
  Add(2, 5);
  Decide();
  for (uint64_t id : {1, 2}) scheduler_.RemoveQueue(QueueId{id}, now_);
  now_ = Decide();
  Decide();
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
}

TEST_F(ProcessSlicesTest, gates_are_fine_only_where_a_queue_of_its_own_process_may_hold_one) {
  Add(1, 0);
  Add(9, 5);
  Decide();
  EXPECT_TRUE(sink_.Of(QueueId{1}).sliced);
  Hints hints;
  hints.priority = 3;
  scheduler_.AddQueue(QueueId{2}, ProcessId{1}, DeviceId{7}, hints, now_, {.sliceable = true});
  Decide();
  EXPECT_TRUE(sink_.Of(QueueId{1}).gated);
  EXPECT_FALSE(sink_.Of(QueueId{1}).sliced);
}

TEST_F(ProcessSlicesTest, hints_change_them) {
  Add(1, 0);
  Add(2, 5);
  Decide();
  scheduler_.SetHints(QueueId{1}, Hints{.priority = 9});
  Decide();
  EXPECT_EQ(SliceOf(1), milliseconds(100));
  EXPECT_EQ(SliceOf(2), kShortestSlice);
}

TEST_F(ProcessSlicesTest, where_one_process_cannot_be_sliced_nobody_is) {
  Add(1, 0);
  Add(2, 5, 100, false);
  Decide();
  EXPECT_EQ(sink_.slice_changes, 0);
}

TEST_F(ProcessSlicesTest, of_those_with_the_shortest_one_at_a_time_runs) {
  Add(1, 0);
  Add(2, 0);
  Add(3, 0);
  Add(9, 5);
  for (uint64_t id : {1, 2, 3}) Work(id);
  int turns[4] = {};
  for (int turn = 0; turn < 9; ++turn) {
    TimePoint next = Decide();
    int on = 0;
    for (uint64_t id : {1, 2, 3}) {
      EXPECT_TRUE(Runs(id)) << "who waits at a gate would want the device as well";
      on += SliceOf(id) != kNoSlice;
      turns[id] += SliceOf(id) != kNoSlice;
    }
    EXPECT_EQ(on, 1);
    ASSERT_NE(next, kNever);
    now_ += microseconds(TIMESLICE_DEFAULT) + milliseconds(100);
  }
  EXPECT_EQ(turns[1], 3);
  EXPECT_EQ(turns[2], 3);
  EXPECT_EQ(turns[3], 3);
}

TEST_F(ProcessSlicesTest, turns_change_right_after_a_more_urgent_process_and_otherwise_seldom) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Work(1);
  Work(2);
  Decide();
  ASSERT_EQ(SliceOf(2), kNoSlice);
  uint64_t submitted = 0;
  // In the middle of a turn, that is too early.
  for (microseconds run : {microseconds(TIMESLICE_DEFAULT) / 2, microseconds(TIMESLICE_DEFAULT)}) {
    now_ += run;
    scheduler_.Progress(QueueId{9}, ++submitted, 0, now_);
    Decide();
    EXPECT_EQ(SliceOf(2), kNoSlice);
    now_ += milliseconds(1);
    scheduler_.Progress(QueueId{9}, submitted, submitted, now_);
    Decide();
    now_ += milliseconds(1);
    Decide();
    EXPECT_EQ(SliceOf(2) == kNoSlice, submitted == 1);
  }
  EXPECT_EQ(SliceOf(1), kNoSlice);
  now_ += microseconds(TIMESLICE_DEFAULT);
  Decide();
  EXPECT_EQ(SliceOf(1), kNoSlice) << "an urgent process would feel it";
  now_ += milliseconds(100);
  Decide();
  EXPECT_EQ(SliceOf(2), kNoSlice);
}

// Several continuous processes and an idle urgent one.
class TogetherTest : public ProcessSlicesTest {
 protected:
  // For `time`, in small steps: each process on the device retires commands of its length, one after the
  // other. With the device as the bound, those on it divide its time; else each has gaps for the others.
  void Run(Duration time, const std::map<uint64_t, Duration>& lengths) {
    for (TimePoint end = now_ + time; now_ < end; now_ += milliseconds(1)) {
      int64_t on = 0;
      for (auto [id, length] : lengths) on += SliceOf(id) != kNoSlice;
      for (auto [id, length] : lengths) {
        if (SliceOf(id) == kNoSlice) continue;
        due_[id] += Duration(milliseconds(1)) / (fills_device_ ? on : 1);
        retired_[id] += static_cast<uint64_t>(due_[id] / length);
        due_[id] %= length;
      }
      Decide();
      // A busy queue reports what it has retired only when asked.
      for (auto [id, length] : lengths) {
        if (std::exchange(sink_.queries[QueueId{id}], 0) != 0)
          scheduler_.Progress(QueueId{id}, retired_[id] + 1000, retired_[id], now_);
      }
    }
  }
  void Begin(std::initializer_list<uint64_t> ids) {
    Add(9, 5);
    for (uint64_t id : ids) {
      Add(id, 0);
      scheduler_.Progress(QueueId{id}, 1000, 0, now_);
    }
    Decide();
  }

  bool Shares(std::initializer_list<uint64_t> ids) {
    return std::all_of(ids.begin(), ids.end(), [&](uint64_t id) { return SliceOf(id) == kDriversSlice; });
  }

  bool fills_device_ = false;
  std::map<uint64_t, Duration> due_;
  std::map<uint64_t, uint64_t> retired_;
};

TEST_F(TogetherTest, those_that_fill_each_others_gaps_share_the_device_and_their_gates_are_fine) {
  Begin({1, 2, 3});
  ASSERT_EQ(SliceOf(2), kNoSlice);
  EXPECT_TRUE(sink_.Of(QueueId{1}).sliced);
  const std::map<uint64_t, Duration> lengths = {
      {1, microseconds(10)}, {2, microseconds(20)}, {3, microseconds(40)}};
  Run(milliseconds(1500), lengths);
  for (uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(SliceOf(id), kDriversSlice);
    EXPECT_FALSE(sink_.Of(QueueId{id}).sliced);
  }
  const int changes = sink_.slice_changes;
  Run(milliseconds(3000), lengths);
  EXPECT_EQ(sink_.slice_changes, changes);
}

TEST_F(TogetherTest, those_that_fill_the_device_take_turns_though_their_commands_are_short) {
  const std::map<uint64_t, Duration> lengths = {{1, microseconds(10)}, {2, microseconds(20)}};
  fills_device_ = true;
  Begin({1, 2});
  Duration shared{};
  for (int i = 0; i < 60'000; ++i) {
    Run(milliseconds(1), lengths);
    if (Shares({1, 2})) shared += milliseconds(1);
  }
  EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1);
  EXPECT_GT(shared, milliseconds(300)) << "it was tried";
  EXPECT_LT(shared, milliseconds(2400)) << "and seldom again";
}

TEST_F(TogetherTest, what_does_more_is_tried_again_and_soon_if_another_process_comes) {
  std::map<uint64_t, Duration> lengths = {{1, microseconds(10)}, {2, microseconds(20)}};
  fills_device_ = true;
  Begin({1, 2});
  Run(milliseconds(10'000), lengths);
  ASSERT_FALSE(Shares({1, 2}));
  fills_device_ = false;
  Run(milliseconds(12'000), lengths);
  EXPECT_TRUE(Shares({1, 2})) << "they have gaps now";
  fills_device_ = true;
  Run(milliseconds(5'000), lengths);
  EXPECT_TRUE(Shares({1, 2})) << "it is kept for a while";
  lengths[3] = microseconds(10);
  Add(3, 0);
  scheduler_.Progress(QueueId{3}, 1000, 0, now_);
  Run(milliseconds(3'000), lengths);
  EXPECT_FALSE(Shares({1, 2, 3}));
}

TEST_F(TogetherTest, one_that_hardly_uses_the_device_delays_the_trial_and_does_not_stop_it) {
  const std::map<uint64_t, Duration> lengths = {{1, microseconds(10)}, {2, microseconds(20)}};
  Begin({1, 2, 3});
  scheduler_.Progress(QueueId{3}, 1000, 1000, now_);
  for (int i = 0; i < 60; ++i) {
    Run(milliseconds(100), lengths);
    scheduler_.Progress(QueueId{3}, 1001 + static_cast<uint64_t>(i), 1001 + static_cast<uint64_t>(i), now_);
  }
  EXPECT_TRUE(Shares({1, 2}));
}

TEST_F(TogetherTest, one_whose_commands_are_long_makes_all_take_turns) {
  Begin({1, 2});
  Run(milliseconds(500), {{1, microseconds(10)}, {2, milliseconds(1)}});
  EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1);
}

TEST_F(TogetherTest, long_commands_are_distinguished_from_short_ones_however_often_they_are_compared) {
  Begin({1, 2});
  const std::map<uint64_t, Duration> lengths = {{1, microseconds(200)}, {2, microseconds(200)}};
  Run(milliseconds(500), lengths);
  for (int task = 1; task <= 100; ++task) {
    scheduler_.Progress(QueueId{9}, static_cast<uint64_t>(task), static_cast<uint64_t>(task), now_);
    Run(milliseconds(1 + task % 40), lengths);
    EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1);
  }
}

TEST_F(TogetherTest, what_was_retired_while_all_had_the_drivers_slices_says_nothing) {
  const std::map<uint64_t, Duration> lengths = {{1, microseconds(200)}, {2, microseconds(200)}};
  for (auto [id, length] : lengths) {
    Add(id, 0);
    scheduler_.Progress(QueueId{id}, 1000, 0, now_);
  }
  // More urgent processes come, run tasks, and go.
  for (uint64_t rival : {9, 10}) {
    Run(milliseconds(2000), lengths);
    ASSERT_EQ(SliceOf(1), kDriversSlice);
    Add(rival, 5);
    for (uint64_t task = 1; task <= 20; ++task) {
      scheduler_.Progress(QueueId{rival}, task, task, now_);
      Run(milliseconds(20), lengths);
      EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1) << task;
    }
    scheduler_.RemoveQueue(QueueId{rival}, now_);
    Run(milliseconds(1100), lengths);
  }
}

TEST_F(TogetherTest, a_count_of_commands_that_no_device_can_reach_does_not_make_them_long) {
  const std::map<uint64_t, Duration> lengths = {{1, microseconds(10)}, {2, microseconds(10)}};
  Begin({1, 2});
  Run(milliseconds(1500), lengths);
  ASSERT_TRUE(Shares({1, 2}));
  retired_[2] += uint64_t{1} << 62;
  for (int i = 0; i < 100; ++i) {
    Run(milliseconds(5), lengths);
    EXPECT_TRUE(Shares({1, 2})) << i;
  }
}

TEST_F(TogetherTest, sharing_ends_when_commands_become_long) {
  Begin({1, 2});
  Run(milliseconds(1500), {{1, microseconds(10)}, {2, microseconds(10)}});
  ASSERT_EQ(SliceOf(1), kDriversSlice);
  Run(milliseconds(500), {{1, microseconds(10)}, {2, microseconds(300)}});
  EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1);
}

TEST_F(TogetherTest, a_pause_of_one_changes_nothing) {
  Begin({1, 2});
  Run(milliseconds(1500), {{1, microseconds(10)}, {2, microseconds(10)}});
  const int changes = sink_.slice_changes;
  scheduler_.Progress(QueueId{2}, retired_[2] + 1000, retired_[2] + 1000, now_);
  Run(milliseconds(50), {{1, microseconds(10)}});
  EXPECT_EQ(sink_.slice_changes, changes);
}

TEST_F(TogetherTest, sharing_ends_with_the_second_process) {
  Begin({1, 2});
  Run(milliseconds(1500), {{1, microseconds(10)}, {2, microseconds(10)}});
  ASSERT_EQ(SliceOf(1), kDriversSlice);
  scheduler_.RemoveQueue(QueueId{2}, now_);
  Run(milliseconds(1100), {{1, microseconds(10)}});
  EXPECT_EQ(SliceOf(1), kShortestSlice);
}

TEST_F(ProcessSlicesTest, a_process_without_work_has_no_turn) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Work(1);
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_EQ(SliceOf(2), kShortestSlice) << "it shall find the device at once";
  now_ += microseconds(TIMESLICE_DEFAULT) * 2;
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice) << "nobody else wants it";
}

TEST_F(ProcessSlicesTest, the_urgent_one_holds_all_the_others) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  for (uint64_t id : {1, 2}) Work(id);
  Decide();
  EXPECT_EQ(SliceOf(2), kNoSlice);
  int changes = sink_.slice_changes;
  Work(9);
  Decide();
  EXPECT_FALSE(Runs(1));
  EXPECT_FALSE(Runs(2));
  EXPECT_TRUE(Runs(9));
  EXPECT_EQ(sink_.slice_changes, changes) << "whose turn it is stays";
}

TEST_F(ProcessSlicesTest, a_process_is_on_again_when_the_one_with_the_turn_has_finished) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Work(1);
  Work(2);
  Decide();
  ASSERT_EQ(SliceOf(2), kNoSlice);
  scheduler_.Progress(QueueId{1}, 1, 1, now_);
  now_ += milliseconds(1);
  Decide();
  EXPECT_EQ(SliceOf(2), kShortestSlice);
}

TEST_F(ProcessSlicesTest, one_with_the_turn_that_becomes_the_most_urgent_takes_nobody_off) {
  Add(1, 0);
  Add(2, 5);
  Work(1);
  Decide();
  Hints most_urgent;
  most_urgent.priority = 9;
  scheduler_.SetHints(QueueId{1}, most_urgent);
  Work(2);
  Decide();
  ASSERT_FALSE(Runs(2));
  EXPECT_EQ(SliceOf(1), milliseconds(100));
  EXPECT_EQ(SliceOf(2), kShortestSlice) << "no other takes turns with it";
}

TEST_F(ProcessSlicesTest, a_process_is_on_again_without_a_more_urgent_one) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Work(1);
  Work(2);
  Decide();
  ASSERT_EQ(SliceOf(2), kNoSlice);
  scheduler_.RemoveQueue(QueueId{9}, now_);
  Decide();
  now_ += milliseconds(1001);
  Decide();
  EXPECT_EQ(SliceOf(2), kDriversSlice);
}

TEST_F(ProcessSlicesTest, shares_are_slices_in_proportion_and_nobody_is_held) {
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  Add(1, 0, 75);
  Add(2, 0, 25);
  Work(1);
  Work(2);
  Decide();
  EXPECT_EQ(SliceOf(1), microseconds(4500));
  EXPECT_EQ(SliceOf(2), microseconds(1500));
  EXPECT_TRUE(Runs(1));
  EXPECT_TRUE(Runs(2));
  EXPECT_FALSE(sink_.Of(QueueId{1}).gated);
  scheduler_.SetPolicy(*FindPolicy(kPolicyHighestPriorityFirst));
  Decide();
  EXPECT_EQ(SliceOf(1), kDriversSlice) << "equal priorities";
}

TEST_F(ProcessSlicesTest, where_slices_cannot_have_the_shares_only_the_process_that_runs_is_on_the_device) {
  scheduler_.SetPolicy(*FindPolicy(kPolicyUtilizationPartition));
  Add(1, 0, 75);
  Add(2, 0, 0);
  Work(1);
  Work(2);
  Decide();
  EXPECT_TRUE(Runs(1));
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_FALSE(Runs(2));
  EXPECT_EQ(SliceOf(2), kNoSlice);
}

TEST_F(ProcessSlicesTest, of_policies_that_let_one_run_only_its_process_is_on_the_device) {
  for (XPolicyType policy : {kPolicyMultiLevelFeedbackQueue, kPolicyKEarliestDeadlineFirst}) {
    SCOPED_TRACE(policy);
    scheduler_.SetPolicy(*FindPolicy(policy));
    if (policy == kPolicyMultiLevelFeedbackQueue) {
      Add(1, 0);
      Add(2, 0);
    }
    Work(1);
    Work(2);
    Decide();
    EXPECT_NE(Runs(1), Runs(2));
    for (uint64_t id : {1, 2}) EXPECT_EQ(SliceOf(id), Runs(id) ? kShortestSlice : kNoSlice);
  }
  // Several that run together share the device as natively.
  scheduler_.SetAtATime(2);
  Decide();
  EXPECT_TRUE(Runs(1) && Runs(2));
  for (uint64_t id : {1, 2}) EXPECT_EQ(SliceOf(id), kDriversSlice);
}

// ---- where the policy's slices would make a process stand still ----

TEST_F(ProcessSlicesTest,
       a_process_that_may_stand_on_the_device_while_absent_leaves_the_others_more_than_it_has) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Work(1);
  Work(2);
  Decide();
  ASSERT_EQ(SliceOf(2), kNoSlice);
  // A stopped process cannot be taken off the device: it keeps its slice.
  scheduler_.SetAbsent(QueueId{1}, true, now_);
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
  EXPECT_FALSE(sink_.Of(QueueId{2}).sliced);
  EXPECT_EQ(SliceOf(9), milliseconds(100));
  // The same for the most urgent one.
  Work(9);
  scheduler_.SetAbsent(QueueId{9}, true, now_);
  Decide();
  EXPECT_EQ(SliceOf(9), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
  for (uint64_t id : {1, 9}) scheduler_.SetAbsent(QueueId{id}, false, now_);
  scheduler_.Progress(QueueId{9}, submitted_, submitted_, now_);
  now_ += milliseconds(1);
  Decide();
  EXPECT_EQ(SliceOf(9), milliseconds(100));
  EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1);
}

TEST_F(ProcessSlicesTest, until_slices_are_given_back_queues_tell_when_they_have_work) {
  Add(1, 0);
  Add(2, 0);
  Add(9, 5);
  Work(1);
  Decide();
  scheduler_.RemoveQueue(QueueId{9}, now_);
  now_ += milliseconds(10);
  Decide();
  ASSERT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_TRUE(sink_.Of(QueueId{2}).tracked) << "it must be taken off when it has";
  Work(2);
  Decide();
  EXPECT_EQ((SliceOf(1) == kNoSlice) + (SliceOf(2) == kNoSlice), 1);
  now_ += milliseconds(1001);
  Decide();
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
  EXPECT_FALSE(sink_.Of(QueueId{2}).tracked);
}

TEST_F(ProcessSlicesTest, an_absent_queue_without_work_changes_none) {
  Add(1, 0);
  Add(9, 5);
  Work(1);
  Decide();
  scheduler_.SetAbsent(QueueId{9}, true, now_);
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_EQ(SliceOf(9), milliseconds(100));
}

TEST_F(ProcessSlicesTest, equals_run_side_by_side_though_one_belongs_to_a_process_with_an_urgent_queue) {
  Add(1, 0);
  Add(9, 5);
  scheduler_.AddQueue(QueueId{10}, ProcessId{9}, DeviceId{7}, Hints{.priority = 0}, now_,
                      {.sliceable = true});
  Work(1);
  Work(10);
  Decide();
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(9), kDriversSlice);
  // Tasks of the urgent queue change no slice.
  const int changes = sink_.slice_changes;
  for (uint64_t task = 1; task <= 20; ++task) {
    scheduler_.Progress(QueueId{9}, task, task - 1, now_);
    Decide();
    EXPECT_FALSE(Runs(1) || Runs(10));
    now_ += milliseconds(1);
    scheduler_.Progress(QueueId{9}, task, task, now_);
    now_ += milliseconds(1);
    Decide();
    EXPECT_TRUE(Runs(1) && Runs(10));
    now_ += milliseconds(20);
  }
  EXPECT_EQ(sink_.slice_changes, changes);
  scheduler_.Progress(QueueId{10}, submitted_, submitted_, now_);
  now_ += milliseconds(1);
  now_ = Decide();
  Decide();
  EXPECT_EQ(SliceOf(1), kShortestSlice);
  EXPECT_EQ(SliceOf(9), milliseconds(100));
}

TEST_F(ProcessSlicesTest, a_held_queue_that_stands_at_its_gate_with_a_long_slice_stops_nobody) {
  Add(1, 0);
  Add(9, 5);
  scheduler_.AddQueue(QueueId{10}, ProcessId{9}, DeviceId{7}, Hints{.priority = -5}, now_,
                      {.sliceable = true});
  Work(1);
  Work(10);
  Decide();
  ASSERT_FALSE(Runs(10));
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(9), kDriversSlice);
}

TEST_F(ProcessSlicesTest, one_that_runs_because_an_urgent_one_waits_for_it_has_a_slice_to_run_in) {
  Add(1, 0);
  Add(9, 5);
  Work(1);
  Work(9);
  Dependency dependency{QueueId{1}, submitted_};
  scheduler_.SetDependencies(QueueId{9}, {&dependency, 1});
  Decide();
  EXPECT_TRUE(Runs(1));
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(9), kDriversSlice);
}

}  // namespace
}  // namespace xsched::sched
