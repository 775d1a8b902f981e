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
