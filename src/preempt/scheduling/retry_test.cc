// Times at which the agent acts again: after a failure, and while something is taken.
#include "preempt/scheduling/retry.h"

#include <gtest/gtest.h>

#include "preempt/gates/taken_watch.h"

namespace xsched::preempt {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kNow{std::chrono::seconds(100)};

TEST(RetryTest, what_has_not_failed_is_due_and_waits_for_nothing) {
  Retry retry;
  EXPECT_TRUE(retry.due(kNow));
  EXPECT_EQ(retry.next(), kNever);
}

TEST(RetryTest, failures_are_tried_again_less_and_less_often_but_at_least_every_200_ms) {
  Retry retry;
  TimePoint now = kNow;
  Duration last{};
  for (int i = 0; i < 10; ++i) {
    retry.Failed(now);
    EXPECT_FALSE(retry.due(now));
    const Duration delay = retry.next() - now;
    EXPECT_TRUE(delay > last || delay == milliseconds(200));
    last = delay;
    now = retry.next();
    EXPECT_TRUE(retry.due(now));
  }
  EXPECT_EQ(last, milliseconds(200));
}

TEST(RetryTest, after_a_success_the_first_delay_is_short_again) {
  Retry retry;
  for (int i = 0; i < 10; ++i) retry.Failed(kNow);
  retry.Reset();
  EXPECT_EQ(retry.next(), kNever);
  retry.Failed(kNow);
  EXPECT_EQ(retry.next(), kNow + milliseconds(5));
}

TEST(TakenWatchTest, the_first_launch_that_finds_something_taken_wakes_the_thread) {
  TakenWatch watch;
  EXPECT_TRUE(watch.Begin());
  EXPECT_FALSE(watch.Begin());
}

TEST(TakenWatchTest, a_launch_during_a_check_wakes_the_thread_again) {
  TakenWatch watch;
  watch.Begin();
  watch.Pause();
  EXPECT_TRUE(watch.Begin());
}

TEST(TakenWatchTest, while_something_is_taken_launches_wake_nobody_and_checks_are_regular) {
  TakenWatch watch;
  TimePoint now = kNow;
  for (int i = 0; i < 100; ++i) {
    watch.Pause();
    const TimePoint next = watch.Checked(true, now);
    EXPECT_EQ(next - now, milliseconds(60));
    EXPECT_FALSE(watch.Begin());
    now = next;
  }
}

TEST(TakenWatchTest, checks_go_on_for_a_second_after_nothing_is_taken_any_more) {
  TakenWatch watch;
  watch.Checked(true, kNow);
  watch.Pause();
  EXPECT_LT(watch.Checked(false, kNow + milliseconds(999)), kNever);
  watch.Pause();
  EXPECT_EQ(watch.Checked(false, kNow + milliseconds(1000)), kNever);
  EXPECT_TRUE(watch.Begin()) << "the next launch wakes the thread";
}

}  // namespace
}  // namespace xsched::preempt
