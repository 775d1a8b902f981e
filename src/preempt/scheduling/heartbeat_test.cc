#include "preempt/scheduling/heartbeat.h"

#include <gtest/gtest.h>

namespace xsched::preempt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = Heartbeat::Verdict;

constexpr TimePoint kStart{seconds(1000)};

TEST(HeartbeatTest, where_nothing_is_taken_nobody_is_asked_or_woken) {
  Heartbeat heart;
  EXPECT_EQ(heart.Look(false, kStart), Verdict::kFine);
  EXPECT_EQ(heart.next(), kNever);
}

TEST(HeartbeatTest, a_server_that_answers_is_asked_now_and_then) {
  Heartbeat heart;
  int asked = 0;
  for (TimePoint now = kStart; now < kStart + seconds(6); now = heart.next()) {
    Verdict verdict = heart.Look(true, now);
    ASSERT_NE(verdict, Verdict::kHangs);
    if (verdict != Verdict::kAsk) continue;
    ++asked;
    heart.Heard();
    heart.Look(true, now + milliseconds(1));
  }
  EXPECT_EQ(asked, 100);
}

TEST(HeartbeatTest, a_server_that_hangs_is_found_out_within_a_quarter_of_a_second) {
  Heartbeat heart;
  ASSERT_EQ(heart.Look(true, kStart), Verdict::kAsk);
  heart.Heard();  // and hangs from now on
  heart.Look(true, kStart);
  TimePoint now = kStart;
  while (heart.Look(true, now) != Verdict::kHangs) {
    ASSERT_GT(heart.next(), now);
    now = heart.next();
  }
  EXPECT_LE(now - kStart, milliseconds(240));
}

TEST(HeartbeatTest, time_in_which_this_process_stood_is_not_held_against_the_server) {
  Heartbeat heart;
  ASSERT_EQ(heart.Look(true, kStart), Verdict::kAsk);
  heart.Heard();
  // This process was stopped for an hour, and sent no ping meanwhile.
  EXPECT_EQ(heart.Look(true, kStart + seconds(3600)), Verdict::kAsk);
  // It was stopped again, and the answer is in the socket.
  heart.Heard();
  EXPECT_EQ(heart.Look(true, kStart + seconds(7200)), Verdict::kAsk);
}

TEST(HeartbeatTest, a_process_that_got_everything_back_waits_for_no_answer) {
  Heartbeat heart;
  ASSERT_EQ(heart.Look(true, kStart), Verdict::kAsk);
  EXPECT_EQ(heart.Look(false, kStart + milliseconds(100)), Verdict::kFine);
  EXPECT_EQ(heart.next(), kNever);
  EXPECT_EQ(heart.Look(true, kStart + milliseconds(180)), Verdict::kAsk) << "asked anew";
}

}  // namespace
}  // namespace xsched::preempt
