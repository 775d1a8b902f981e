// Equally urgent processes in virtual time: when they have the device in the order in which they come.
#include <gtest/gtest.h>

#include <algorithm>

#include "sched/core/scheduler.h"
#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLong = milliseconds(100);

// Queue and process have the same number. 1 and 2 are equally urgent, 9 is less urgent and always has work.
class InOrderTest : public testing::Test {
 protected:
  void SetUp() override {
    Add(1, 5);
    Add(2, 5);
    Add(9, 0);
    scheduler_.Progress(QueueId{9}, 1000000, 0, now_);
    DecideUntil(now_);
  }
  void Add(uint64_t id, Priority priority) {
    Hints hints;
    hints.priority = priority;
    scheduler_.AddQueue(QueueId{id}, ProcessId{id}, DeviceId{7}, hints, now_, {.sliceable = true});
  }
  void Begin(uint64_t id) {
    ++submitted_[id];
    scheduler_.Progress(QueueId{id}, submitted_[id], submitted_[id] - 1, now_);
    DecideUntil(now_);
  }
  void End(uint64_t id) {
    scheduler_.Progress(QueueId{id}, submitted_[id], submitted_[id], now_);
    DecideUntil(now_);
  }
  // Time passes, and the scheduler decides whenever it wants to.
  void DecideUntil(TimePoint time) {
    for (TimePoint next = scheduler_.Decide(now_, sink_); now_ < time;) {
      now_ = std::min(std::max(next, now_ + std::chrono::microseconds(100)), time);
      next = scheduler_.Decide(now_, sink_);
    }
  }
  void Pass(Duration time) { DecideUntil(now_ + time); }
  void Request(uint64_t id, Duration length) {
    Begin(id);
    Pass(length);
    End(id);
    Pass(milliseconds(10));
  }
  Duration SliceOf(uint64_t id) { return sink_.slices[ProcessId{id}]; }

  TimePoint now_{milliseconds(100)};
  uint64_t submitted_[10] = {};
  Recorder sink_;
  Scheduler scheduler_{SchedulerConfig{}};
};

TEST_F(InOrderTest, until_their_requests_are_known_they_share_it) {
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
  EXPECT_EQ(SliceOf(9), kShortestSlice);
}

TEST_F(InOrderTest, with_requests_of_similar_length_each_keeps_the_device_until_it_is_done) {
  Request(1, milliseconds(20));
  Request(2, milliseconds(15));
  EXPECT_EQ(SliceOf(1), kLong);
  EXPECT_EQ(SliceOf(2), kLong);
  const int changes = sink_.slice_changes;
  for (int i = 0; i < 10; ++i) {
    Begin(1);
    Begin(2);
    Pass(milliseconds(20));
    End(1);
    Pass(milliseconds(15));
    End(2);
    Pass(milliseconds(10));
  }
  EXPECT_EQ(sink_.slice_changes, changes)
      << "requests that are served in order say nothing about their length";
}

TEST_F(InOrderTest, requests_that_share_the_device_show_their_length) {
  Begin(1);
  Pass(milliseconds(5));
  Begin(2);
  Pass(milliseconds(30));
  End(1);
  Pass(milliseconds(5));
  EXPECT_EQ(SliceOf(2), kDriversSlice) << "the length of the second one's is not known yet";
  End(2);
  Pass(milliseconds(10));
  EXPECT_EQ(SliceOf(1), kLong) << "each has had 20 ms";
  EXPECT_EQ(SliceOf(2), kLong);
}

TEST_F(InOrderTest, a_short_request_that_shares_the_device_with_a_long_one_goes_on_sharing_it) {
  for (int i = 0; i < 10; ++i) {
    Begin(1);
    Begin(2);
    Pass(milliseconds(10));
    End(2);
    Pass(milliseconds(15));
    End(1);
    Pass(milliseconds(10));
    EXPECT_EQ(SliceOf(1), kDriversSlice);
    EXPECT_EQ(SliceOf(2), kDriversSlice);
  }
}

TEST_F(InOrderTest, a_short_request_does_not_wait_for_a_long_one) {
  Request(1, milliseconds(20));
  Request(2, milliseconds(2));
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
}

TEST_F(InOrderTest, no_request_waits_for_one_of_more_than_50_ms) {
  Request(1, milliseconds(60));
  Request(2, milliseconds(60));
  EXPECT_EQ(SliceOf(1), kDriversSlice);
}

TEST_F(InOrderTest, one_that_does_not_end_any_more_makes_nobody_wait_for_long) {
  Request(1, milliseconds(20));
  Request(2, milliseconds(20));
  ASSERT_EQ(SliceOf(1), kLong);
  Begin(1);
  Begin(2);
  Pass(milliseconds(160));
  EXPECT_EQ(SliceOf(1), kDriversSlice);
  EXPECT_EQ(SliceOf(2), kDriversSlice);
}

TEST_F(InOrderTest, one_that_has_had_no_work_yet_changes_nothing_until_it_has) {
  Request(1, milliseconds(20));
  Request(2, milliseconds(20));
  Add(3, 5);
  Pass(milliseconds(1));
  EXPECT_EQ(SliceOf(1), kLong);
  EXPECT_EQ(SliceOf(3), kLong);
  Begin(3);
  EXPECT_EQ(SliceOf(1), kDriversSlice) << "its request may be of any length";
  Pass(milliseconds(20));
  End(3);
  Pass(milliseconds(10));
  EXPECT_EQ(SliceOf(3), kLong);
}

}  // namespace
}  // namespace xsched::sched
