#include "preempt/gates/pace.h"

#include <gtest/gtest.h>

namespace xsched::preempt {
namespace {

using std::chrono::microseconds;

constexpr TimePoint kStart{};
constexpr Duration kLatency = microseconds(2000);

TEST(Pace, before_anything_is_known_little_is_let_through) {
  Pace pace;
  EXPECT_EQ(pace.Limit(16, kLatency), 2);
  EXPECT_EQ(pace.Limit(1, kLatency), 1);
}

TEST(Pace, long_commands_are_let_through_one_by_one) {
  Pace pace;
  pace.OnRetired(1, kStart, kStart + microseconds(2100));
  EXPECT_EQ(pace.Limit(16, kLatency), 1);
}

TEST(Pace, short_commands_are_bounded_by_the_threshold) {
  Pace pace;
  pace.OnRetired(10, kStart, kStart + microseconds(100));
  EXPECT_EQ(pace.Limit(16, kLatency), 16);
  EXPECT_EQ(Pace::Batch(16, 8), 8);
  EXPECT_EQ(Pace::Batch(16, 4), 4);
}

TEST(Pace, in_between_the_wanted_latency_bounds_what_is_in_flight) {
  Pace pace;
  pace.OnRetired(4, kStart, kStart + microseconds(1600));
  EXPECT_EQ(pace.Limit(16, kLatency), 5);
  EXPECT_EQ(Pace::Batch(5, 8), 2);
}

TEST(Pace, a_slower_command_counts_at_once_and_a_faster_one_slowly) {
  Pace pace;
  pace.OnRetired(1, kStart, kStart + microseconds(100));
  pace.OnRetired(1, kStart, kStart + microseconds(900));
  EXPECT_EQ(pace.mean(), microseconds(900));
  pace.OnRetired(1, kStart, kStart + microseconds(100));
  EXPECT_EQ(pace.mean(), microseconds(800));
}

// The device may have waited for the program.
TEST(Pace, what_takes_minutes_counts_as_the_longest_command) {
  Pace pace;
  pace.OnRetired(1, kStart, kStart + std::chrono::minutes(5));
  EXPECT_EQ(pace.mean(), Pace::kLongest);
}

TEST(Pace, a_clock_that_does_not_move_teaches_nothing) {
  Pace pace;
  pace.OnRetired(3, kStart, kStart);
  EXPECT_EQ(pace.mean(), Duration::zero());
}

}  // namespace
}  // namespace xsched::preempt
