// Highest priority first: which queues of a device it lets run.
#include <gtest/gtest.h>

#include "sched/testing/policy_device.h"

namespace xsched::sched::hpf {
namespace {

const Policy& HighestPriorityFirst() { return *FindPolicy(kPolicyHighestPriorityFirst); }

QueueView Queue(uint64_t id, Priority priority) { return View(id, {.priority = priority}); }

TEST(HighestPriorityFirst, the_most_urgent_run_side_by_side) {
  PolicyDevice ready = {Queue(1, 0), Queue(2, 5), Queue(3, 5), Queue(4, -9)};
  EXPECT_EQ(ready.Decide(HighestPriorityFirst()), kNever);
  EXPECT_FALSE(ready[0].run);
  EXPECT_TRUE(ready[1].run);
  EXPECT_TRUE(ready[2].run);
  EXPECT_FALSE(ready[3].run);
}

TEST(HighestPriorityFirst, inherited_priority_counts) {
  PolicyDevice ready = {Queue(1, 0), Queue(2, 5)};
  ready[0].priority = 5;
  ready.Decide(HighestPriorityFirst());
  EXPECT_TRUE(ready[0].run);
}

TEST(HighestPriorityFirst, no_execute_runs_only_when_nobody_else_is_ready) {
  PolicyDevice ready = {Queue(1, PRIORITY_NO_EXECUTE), Queue(2, PRIORITY_MIN)};
  ready.Decide(HighestPriorityFirst());
  EXPECT_FALSE(ready[0].run);
  PolicyDevice alone = {Queue(1, PRIORITY_NO_EXECUTE)};
  alone.Decide(HighestPriorityFirst());
  EXPECT_TRUE(alone[0].run);
}

TEST(HighestPriorityFirst, only_a_higher_priority_can_hold_a_queue) {
  EXPECT_TRUE(HighestPriorityFirst().CanHold(Hints{.priority = 0}, Hints{.priority = 1}));
  EXPECT_FALSE(HighestPriorityFirst().CanHold(Hints{.priority = 1}, Hints{.priority = 1}));
}

}  // namespace
}  // namespace xsched::sched::hpf
