// Laxity: which queue of a device runs, and when that changes.
#include <gtest/gtest.h>

#include "sched/sim/simulator.h"
#include "sched/testing/policy_device.h"

namespace xsched::sched::lax {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kNow = PolicyDevice::kNow;

const Policy& Laxity() { return *FindPolicy(kPolicyLaxity); }

QueueView Lax(uint64_t id, milliseconds laxity, Priority lax, Priority critical) {
  QueueView view = View(
      id, {.laxity_us = microseconds(laxity).count(), .lax_priority = lax, .critical_priority = critical});
  view.ready_since = kNow;
  return view;
}

TEST(Laxity, the_priority_changes_when_the_laxity_is_used_up) {
  PolicyDevice ready = {Lax(1, milliseconds(20), -5, 5), View(2, {})};
  EXPECT_EQ(ready.Decide(Laxity(), kNow), kNow + milliseconds(20));
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
  EXPECT_EQ(ready.Decide(Laxity(), kNow + milliseconds(20)), kNever);
  EXPECT_TRUE(ready[0].run);
  EXPECT_FALSE(ready[1].run);
}

// In XSched 1.2 such a queue was always critical.
TEST(Laxity, without_a_laxity_the_usual_priority_counts) {
  PolicyDevice ready = {View(1, {.priority = 1, .critical_priority = 100}), View(2, {.priority = 2})};
  EXPECT_EQ(ready.Decide(Laxity()), kNever);
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
}

TEST(Laxity, a_queue_that_a_more_urgent_one_waits_for_is_as_urgent) {
  PolicyDevice ready = {Lax(1, milliseconds(20), -5, 5), View(2, {.priority = 3})};
  ready[0].priority = 9;
  ready.Decide(Laxity(), kNow);
  EXPECT_TRUE(ready[0].run);
}

TEST(Laxity, who_can_hold_whom_follows_from_the_priorities_that_a_queue_may_have) {
  const Hints lax = {.laxity_us = 1000, .lax_priority = -5, .critical_priority = 5};
  EXPECT_TRUE(Laxity().CanHold({.priority = 4}, lax));
  EXPECT_FALSE(Laxity().CanHold({.priority = 5}, lax));
  EXPECT_TRUE(Laxity().CanHold(lax, {.priority = -4}));
  EXPECT_FALSE(Laxity().CanHold(lax, {.priority = -5}));
}

ProcessView Process(uint64_t id, const Hints& hints) {
  ProcessView process{};
  process.id = ProcessId{id};
  process.priority = hints.priority;
  process.hints = hints;
  return process;
}

// Otherwise a held process uses up slices at its closed gates, which was half of the device's time.
TEST(Laxity, with_laxities_only_those_that_run_are_on_a_device_that_divides_its_time) {
  const Hints lax = {.laxity_us = 1000, .lax_priority = -5, .critical_priority = 5};
  ProcessView processes[] = {Process(1, lax), Process(2, {})};
  ASSERT_EQ(Laxity().Divide(processes), Division::kBesideHolding);
  EXPECT_EQ(processes[0].slice, kShortestSlice);
  EXPECT_EQ(processes[1].slice, kShortestSlice);
}

TEST(Laxity, without_laxities_slices_follow_the_priorities) {
  ProcessView processes[] = {Process(1, {.priority = 1}), Process(2, {})};
  ASSERT_EQ(Laxity().Divide(processes), Division::kBesideHolding);
  EXPECT_GT(processes[0].slice, kShortestSlice);
  EXPECT_EQ(processes[1].slice, kShortestSlice);
}

TEST(Laxity, where_nobody_is_ever_held_slices_are_as_ever) {
  const Hints lax = {.laxity_us = 1000};
  ProcessView equals[] = {Process(1, lax), Process(2, {})};
  EXPECT_EQ(Laxity().Divide(equals), Division::kNone);
  ProcessView first_has_more[] = {Process(1, {.priority = 1, .laxity_us = 1000}), Process(2, {})};
  EXPECT_EQ(Laxity().Divide(first_has_more), Division::kBesideHolding) << "of one of its queues";
}

// A conference's frame must be done 60 ms after it came, and takes 8 ms; speech comes in long pieces.
TEST(Laxity, frames_are_in_time_beside_speech_which_is_not_cut_up_for_each_of_them) {
  SimulatedQueue frames;
  frames.hints = {.laxity_us = 40'000, .lax_priority = 0, .critical_priority = 2};
  frames.command = milliseconds(2);
  frames.commands = 4;
  frames.period = milliseconds(100);
  SimulatedQueue speech;
  speech.hints.priority = 1;
  speech.command = milliseconds(2);
  speech.commands = 30;
  speech.period = milliseconds(330);
  const SimulationResult result = Simulate(Laxity(), {frames, speech}, seconds(6));
  ASSERT_GE(result.queues[0].latencies.size(), 55u);
  for (Duration latency : result.queues[0].latencies) EXPECT_LE(latency, milliseconds(60));
  int uncut = 0;
  for (Duration latency : result.queues[1].latencies) uncut += latency <= milliseconds(64);
  EXPECT_GT(uncut, static_cast<int>(result.queues[1].latencies.size()) / 4);
}

}  // namespace
}  // namespace xsched::sched::lax
