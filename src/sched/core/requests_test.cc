// Requests: since when a queue has its oldest unfinished work.
#include "sched/core/requests.h"

#include <gtest/gtest.h>

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint At(int64_t ms) { return TimePoint(milliseconds(ms)); }

constexpr Hints kDueIn10Ms = {.deadline_us = 10'000};

TEST(Requests, a_queue_that_always_has_work_has_one_request_after_another) {
  Requests requests;
  requests.Begin(10, At(0));
  EXPECT_FALSE(requests.Continue(10, 5, At(4)));
  EXPECT_FALSE(requests.Continue(20, 8, At(6))) << "the second one has come, and the first one is not done";
  EXPECT_FALSE(requests.Continue(30, 9, At(7)));
  EXPECT_EQ(requests.since(), At(0));
  EXPECT_TRUE(requests.Continue(30, 10, At(9)));
  EXPECT_EQ(requests.since(), At(6));
  EXPECT_FALSE(requests.Continue(40, 25, At(15)));
  EXPECT_TRUE(requests.Continue(40, 30, At(20)));
  EXPECT_EQ(requests.since(), At(15));
}

TEST(Requests, work_that_comes_when_all_before_is_done_is_a_request) {
  Requests requests;
  requests.Begin(10, At(0));
  EXPECT_TRUE(requests.Continue(20, 10, At(8)));
  EXPECT_EQ(requests.since(), At(8));
}

TEST(Requests, a_short_pause_is_a_part_of_a_request_that_is_in_time) {
  Requests requests;
  requests.Begin(1, At(0));
  requests.Resume(2, kDueIn10Ms, At(9));
  EXPECT_EQ(requests.since(), At(0));
  requests.Resume(3, kDueIn10Ms, At(10));
  EXPECT_EQ(requests.since(), At(10)) << "it was late";
}

TEST(Requests, without_a_deadline_the_laxity_says_what_is_late) {
  Requests requests;
  requests.Begin(1, At(0));
  requests.Resume(2, {.laxity_us = 5000}, At(6));
  EXPECT_EQ(requests.since(), At(6));
  requests.Resume(3, {}, At(1000));
  EXPECT_EQ(requests.since(), At(6)) << "nothing is ever late";
}

}  // namespace
}  // namespace xsched::sched
