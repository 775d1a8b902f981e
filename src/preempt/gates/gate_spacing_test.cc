#include "preempt/gates/gate_spacing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "ipc/control_block.h"

namespace xsched::preempt {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class GateSpacingTest : public testing::Test {
 protected:
  using Place = GateSpacing::Place;

  Place Next() { return Decide().place; }
  GateSpacing::Decision Decide() { return gates_.Before(++number_, now_); }
  bool Launch() { return Next() != Place::kNothing; }
  // Brings the queue to a steady pace, with gates that need not report.
  void SteadyPace(microseconds each) {
    now_.pausable = now_.telling = false;
    Run(2000, each);
  }
  // Launches `count` commands while the device, 100 commands behind, finishes one per `each`. Returns the
  // positions of gates.
  std::vector<uint64_t> Run(int count, microseconds each) {
    std::vector<uint64_t> gates;
    for (int i = 0; i < count; ++i) {
      if (Launch()) gates.push_back(number_ - 1);
      time_ += each;
      now_.retired = number_ > 100 ? number_ - 100 : 0;
    }
    return gates;
  }

  static TimePoint Time() {
    ++clock_reads_;
    return time_;
  }

  static TimePoint time_;
  static int clock_reads_;
  GateSpacing gates_;
  uint64_t number_ = 0;
  GateSpacing::Now now_{0, false, true, true, true, INT64_MAX, microseconds(200), &Time};
};
TimePoint GateSpacingTest::time_ = TimePoint{} + std::chrono::seconds(1);
int GateSpacingTest::clock_reads_ = 0;

TEST_F(GateSpacingTest, the_clock_is_read_only_where_progress_is_seen) {
  Run(200, microseconds(10));
  clock_reads_ = 0;
  const uint64_t first = number_;
  while (number_ < first + 100) Launch();
  EXPECT_EQ(clock_reads_, 1);
  ++now_.retired;
  Launch();
  EXPECT_EQ(clock_reads_, 2);
}

TEST_F(GateSpacingTest, a_decision_says_from_which_command_on_there_may_be_another_one) {
  SteadyPace(microseconds(10));
  while (Next() == Place::kNothing) {
  }
  const uint64_t until = Decide().quiet_until;
  ASSERT_GT(until, number_ + 1);
  while (number_ + 1 < until) EXPECT_EQ(Next(), Place::kNothing);
  EXPECT_NE(Next(), Place::kNothing);
}

TEST_F(GateSpacingTest, a_held_queue_gets_its_gate_while_another_thread_asks_about_it) {
  now_.hold = true;
  std::atomic<int> asked{0};
  std::thread other([&] {
    for (; asked.load() < 100'000; ++asked) gates_.last_access();
  });
  int without_gate = 0;
  while (asked.load() < 100'000) {
    now_.retired = number_;
    without_gate += Next() == Place::kNothing;
  }
  other.join();
  EXPECT_EQ(without_gate, 0);
}

TEST_F(GateSpacingTest, a_queue_that_is_idle_or_held_is_asked_about_each_command) {
  now_.retired = number_;
  EXPECT_EQ(Decide().quiet_until, 0u);
  EXPECT_GT(Decide().quiet_until, number_);
  now_.hold = true;
  EXPECT_EQ(Decide().quiet_until, 0u);
}

TEST_F(GateSpacingTest, a_queue_that_nobody_can_hold_gets_none) {
  now_.gated = false;
  EXPECT_TRUE(Run(1000, microseconds(10)).empty());
}

TEST_F(GateSpacingTest, gates_are_as_far_apart_as_the_wanted_latency) {
  Run(2000, microseconds(10));
  std::vector<uint64_t> gates = Run(200, microseconds(10));
  ASSERT_GE(gates.size(), 9u);
  ASSERT_LE(gates.size(), 11u);
  EXPECT_NEAR(static_cast<double>(gates[5] - gates[4]), 20, 1);
}

TEST_F(GateSpacingTest, long_commands_get_a_gate_each) {
  Run(500, microseconds(1000));
  EXPECT_EQ(Run(50, microseconds(1000)).size(), 50u);
}

TEST_F(GateSpacingTest, at_a_steady_pace_one_gate_of_four_reports) {
  SteadyPace(microseconds(10));
  std::vector<Place> gates;
  while (gates.size() < 8) {
    const Place place = Next();
    if (place != Place::kNothing) gates.push_back(place);
    time_ += microseconds(10);
    now_.retired = number_ - 100;
  }
  EXPECT_EQ(std::count(gates.begin(), gates.end(), Place::kGateThatReports), 2);
}

TEST_F(GateSpacingTest, every_gate_reports_before_the_pace_is_known) {
  now_.pausable = now_.telling = false;
  for (int i = 0; i < 40; ++i) EXPECT_NE(Next(), Place::kGate);
}

TEST_F(GateSpacingTest, every_gate_of_long_commands_reports) {
  SteadyPace(microseconds(1000));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Next(), Place::kGateThatReports);
}

TEST_F(GateSpacingTest, every_gate_that_tells_that_it_is_passed_reports) {
  SteadyPace(microseconds(10));
  now_.telling = true;
  for (int i = 0; i < 100; ++i) EXPECT_NE(Next(), Place::kGate);
}

TEST_F(GateSpacingTest, reports_are_never_far_apart) {
  SteadyPace(microseconds(1));
  uint64_t reported = 0;
  for (const uint64_t first = number_; number_ < first + 2000;) {
    if (Next() == Place::kGateThatReports) {
      EXPECT_TRUE(reported == 0 || number_ - reported <= 200) << number_ << " after " << reported;
      reported = number_;
    }
    time_ += microseconds(1);
    now_.retired = number_ - 100;
  }
  EXPECT_NE(reported, 0u);
}

TEST_F(GateSpacingTest,
       a_held_queue_gets_a_gate_at_once_if_the_device_may_have_passed_those_without_a_report) {
  SteadyPace(microseconds(10));
  while (Next() != Place::kGateThatReports) continue;
  const uint64_t reports = number_ - 1;
  while (Next() != Place::kGate) continue;
  now_.hold = true;
  now_.retired = reports - 1;
  EXPECT_EQ(Next(), Place::kNothing) << "it has not come to the one that reports";
  now_.retired = reports;
  EXPECT_EQ(Next(), Place::kGateThatReports);
}

TEST_F(GateSpacingTest, at_level_1_the_launch_config_bounds_what_is_between_two) {
  now_.at_most = 8;
  Run(2000, microseconds(1));
  EXPECT_EQ(Run(80, microseconds(1)).size(), 10u);
}

TEST_F(GateSpacingTest, before_the_pace_is_known_each_command_has_one) {
  Launch();
  int gates = 0;
  for (int i = 0; i < 40; ++i) gates += Launch() ? 1 : 0;
  EXPECT_EQ(gates, 40);
}

TEST_F(GateSpacingTest, a_held_queue_gets_one_in_front_of_its_next_command) {
  Run(2000, microseconds(10));
  now_.hold = true;
  now_.retired = number_;
  EXPECT_TRUE(Launch());
  EXPECT_TRUE(Launch()) << "the device may be through the first";
  EXPECT_FALSE(Launch()) << "it has not come to the second";
}

TEST_F(GateSpacingTest, what_was_let_through_a_gate_unseen_is_held_again) {
  now_.hold = true;
  EXPECT_TRUE(Launch());
  now_.retired = number_;  // it was opened, and closed, between two launches
  EXPECT_TRUE(Launch());
}

TEST_F(GateSpacingTest, the_first_command_of_an_idle_queue_needs_none) {
  for (int burst = 0; burst < 10; ++burst) {
    EXPECT_FALSE(Launch());
    now_.retired = number_;
    time_ += std::chrono::milliseconds(20);
  }
}

TEST_F(GateSpacingTest, time_spent_held_says_nothing_of_how_long_commands_take) {
  Run(2000, microseconds(10));
  now_.hold = true;
  Launch();
  time_ += std::chrono::milliseconds(500);
  now_.hold = false;
  Launch();
  std::vector<uint64_t> gates = Run(200, microseconds(10));
  EXPECT_LE(gates.size(), 12u);
}

TEST_F(GateSpacingTest, a_queue_is_stopped_at_the_first_gate_that_it_has_not_passed) {
  now_.gated = false;
  for (uint64_t behind : {10u, 20u}) {
    while (number_ < behind) Launch();
    now_.retired = number_;
    now_.hold = true;
    ASSERT_TRUE(Launch());
    now_.hold = false;
    Launch();
  }
  EXPECT_FALSE(gates_.Stopped(0, 9, 30)) << "still on its way to the first gate";
  EXPECT_TRUE(gates_.Stopped(0, 10, 30));
  EXPECT_FALSE(gates_.Stopped(10, 10, 30)) << "it went through";
  EXPECT_FALSE(gates_.Stopped(10, 19, 30));
  EXPECT_TRUE(gates_.Stopped(10, 20, 30));
  EXPECT_FALSE(gates_.Stopped(20, 25, 30)) << "no gate is left";
}

TEST_F(GateSpacingTest, gates_that_do_not_hold_what_the_program_suspends_stop_nobody) {
  now_.gated = false;
  for (bool pausable : {false, true}) {
    while (number_ < (pausable ? 20u : 10u)) Launch();
    now_.retired = number_;
    now_.pausable = pausable;
    now_.hold = true;
    ASSERT_TRUE(Launch());
    now_.hold = false;
  }
  EXPECT_FALSE(gates_.Stopped(0, 10, 30)) << "the device goes through the first, and reports nothing";
  EXPECT_FALSE(gates_.Stopped(0, 19, 30));
  EXPECT_TRUE(gates_.Stopped(0, 20, 30));
}

TEST_F(GateSpacingTest, a_held_queue_ends_at_the_first_gate_that_the_device_has_not_passed) {
  EXPECT_EQ(gates_.OpenEnd(ipc::kNonePassed, 0, 7), 7u) << "there is no gate";
  now_.hold = true;
  for (uint64_t behind : {0u, 10u, 20u}) {
    while (number_ < behind) ++number_;
    now_.retired = number_;
    ASSERT_TRUE(Launch());
  }
  EXPECT_EQ(gates_.OpenEnd(ipc::kNonePassed, 0, 30), 0u) << "it waits in front of the first command";
  EXPECT_EQ(gates_.OpenEnd(0, 0, 30), 10u);
  EXPECT_EQ(gates_.OpenEnd(0, 10, 30), 10u);
  EXPECT_EQ(gates_.OpenEnd(10, 10, 30), 20u);
  EXPECT_EQ(gates_.OpenEnd(20, 20, 30), 30u);
  EXPECT_EQ(gates_.OpenEnd(0, 11, 30), 20u) << "something behind the second gate has retired";
}

TEST_F(GateSpacingTest, a_queue_that_has_finished_is_stopped) { EXPECT_TRUE(gates_.Stopped(0, 30, 30)); }

TEST_F(GateSpacingTest, reports_of_a_tracked_queue_are_spaced) {
  EXPECT_TRUE(gates_.ReportAfter(1, false, &Time));
  gates_.Accesses(1, 1);
  time_ += milliseconds(1);
  EXPECT_FALSE(gates_.ReportAfter(2, false, &Time));
  EXPECT_TRUE(gates_.ReportAfter(3, true, &Time)) << "nobody else could ask";
  time_ += milliseconds(5);
  EXPECT_TRUE(gates_.ReportAfter(4, false, &Time));
  EXPECT_EQ(gates_.last_access(), 1u);
}

}  // namespace
}  // namespace xsched::preempt
