#include "preempt/scheduling/process_slices.h"

#include <gtest/gtest.h>

#include <vector>

namespace xsched::preempt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr XDevice kDevice = 7;

// A HAL that fails as often as a test wants.
struct FakeHal {
  int failures = 0;
  int unsettled = 0;
  std::vector<uint64_t> set;
} hal;

XResult SetSlice(XDevice, uint64_t slice_us) {
  if (hal.failures > 0) return --hal.failures, kXSchedErrorHardware;
  hal.set.push_back(slice_us);
  return kXSchedSuccess;
}
bool Settle() { return hal.unsettled == 0 || --hal.unsettled == 0; }

class ProcessSlicesTest : public testing::Test {
 protected:
  ProcessSlicesTest() {
    hal = {};
    XProcessOps ops{};
    ops.size = sizeof ops;
    ops.set_slice = SetSlice;
    ops.refresh = [] {};
    ops.settle = Settle;
    slices_.Use(ops);
  }
  // Lets time pass until nothing is left to do, at most for a minute. Returns how long it took.
  Duration Settled() {
    const TimePoint start = now_;
    for (TimePoint next; (next = slices_.Apply(now_)) != kNever && now_ < start + seconds(60);) {
      EXPECT_GE(next, now_);
      now_ = next;
    }
    return now_ - start;
  }

  ProcessSlices slices_;
  TimePoint now_{seconds(1000)};
};

TEST_F(ProcessSlicesTest, where_nothing_is_wanted_nothing_is_done) {
  EXPECT_EQ(slices_.Apply(now_), kNever);
  EXPECT_FALSE(slices_.AnyTaken());
}

TEST_F(ProcessSlicesTest, a_slice_that_could_not_be_set_is_tried_again_until_it_is) {
  slices_.Want(kDevice, 1);
  hal.failures = 10;
  const Duration took = Settled();
  EXPECT_EQ(hal.set, std::vector<uint64_t>{1});
  EXPECT_LT(took, seconds(2));
  EXPECT_EQ(slices_.Apply(now_ + seconds(1)), kNever);
  EXPECT_EQ(hal.set.size(), 1u) << "it is not set again and again";
}

TEST_F(ProcessSlicesTest, what_fails_is_tried_soon_at_first_and_then_less_often) {
  slices_.Want(kDevice, 1);
  hal.failures = 1'000'000;
  EXPECT_LE(slices_.Apply(now_), now_ + milliseconds(5));
  Duration longest{};
  for (int i = 0; i < 20; ++i) {
    const TimePoint next = slices_.Apply(now_);
    longest = std::max(longest, next - now_);
    now_ = next;
  }
  EXPECT_EQ(longest, milliseconds(200));
}

TEST_F(ProcessSlicesTest, the_drivers_slice_is_given_back_also_where_ours_only_may_have_been_set) {
  slices_.Want(kDevice, 1);
  hal.failures = 1;
  slices_.Apply(now_);
  EXPECT_TRUE(slices_.AnyTaken());
  slices_.WantDrivers();  // the server has gone
  EXPECT_TRUE(slices_.AnyTaken()) << "who knows";
  hal.failures = 3;
  Settled();
  EXPECT_EQ(hal.set, std::vector<uint64_t>{0});
  EXPECT_FALSE(slices_.AnyTaken());
}

TEST_F(ProcessSlicesTest, many_changes_while_nobody_could_act_end_at_the_last) {
  for (int i = 0; i < 600; ++i) slices_.Want(kDevice, i % 2 == 0 ? 100'000 : kSliceNone);
  slices_.Want(kDevice, 1);
  Settled();
  EXPECT_EQ(hal.set, std::vector<uint64_t>{1});
}

TEST_F(ProcessSlicesTest, a_change_does_not_wait_for_the_retry_of_what_has_failed_before) {
  slices_.Want(kDevice, 1);
  hal.failures = 1'000'000;
  for (int i = 0; i < 20; ++i) now_ = slices_.Apply(now_);
  hal.failures = 0;
  slices_.Want(kDevice, 0);
  EXPECT_EQ(slices_.Apply(now_ - milliseconds(150)), kNever);
}

TEST_F(ProcessSlicesTest, what_the_hal_could_not_give_back_is_tried_again) {
  hal.unsettled = 4;
  EXPECT_LT(Settled(), seconds(1));
  EXPECT_EQ(hal.unsettled, 0);
  EXPECT_TRUE(slices_.Settled());
}

TEST_F(ProcessSlicesTest, a_hal_of_an_older_build_has_nothing_to_settle) {
  XProcessOps ops{};
  ops.size = offsetof(XProcessOps, settle);
  ops.set_slice = SetSlice;
  ops.refresh = [] {};
  ops.settle = [] { return false; };  // a field behind the end of the older table
  slices_.Use(ops);
  slices_.Want(kDevice, 1);
  EXPECT_EQ(slices_.Apply(now_), kNever);
  EXPECT_TRUE(slices_.Settled());
}

}  // namespace
}  // namespace xsched::preempt
