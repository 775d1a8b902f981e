#include "xsched/hint.h"

#include <semaphore.h>

#include "preempt/api/testing/api_test.h"

namespace xsched::preempt::testing {
namespace {

class HintApiTest : public ApiTest {
 protected:
  sched::Hints hints() const { return QueueOf(driver_)->hints(); }
};

TEST_F(HintApiTest, each_hint_reaches_its_queue_and_leaves_the_others_as_they_are) {
  const XQueueHandle queue = Make(driver_);
  EXPECT_EQ(XHintPriority(queue, 3), kXSchedSuccess);
  EXPECT_EQ(XHintUtilization(queue, 40), kXSchedSuccess);
  EXPECT_EQ(XHintDeadline(queue, 5000), kXSchedSuccess);
  EXPECT_EQ(XHintLaxity(queue, 700, 1, 6), kXSchedSuccess);
  EXPECT_EQ(XHintWeight(queue, 250), kXSchedSuccess);
  EXPECT_EQ(hints().weight, 250);
  EXPECT_EQ(XHintReservation(queue, 2000, 10'000, 5000, 1000), kXSchedSuccess);
  EXPECT_EQ(hints().guarantee_us, 2000);
  EXPECT_EQ(hints().period_us, 10'000);
  EXPECT_EQ(hints().limit_us, 5000);
  EXPECT_EQ(hints().burst_us, 1000);
  EXPECT_EQ(XHintLatencyTarget(queue, 20'000), kXSchedSuccess);
  EXPECT_EQ(hints().latency_target_us, 20'000);
  EXPECT_EQ(XHintFloor(queue, 15), kXSchedSuccess);
  EXPECT_EQ(hints().floor, 15);
  EXPECT_EQ(hints().priority, 3);
  EXPECT_EQ(hints().utilization, 40);
  EXPECT_EQ(hints().deadline_us, 5000);
  EXPECT_EQ(hints().laxity_us, 700);
  EXPECT_EQ(hints().lax_priority, 1);
  EXPECT_EQ(hints().critical_priority, 6);
}

TEST_F(HintApiTest, the_hints_of_a_queue_can_be_read) {
  const XQueueHandle queue = Make(driver_);
  Priority priority = 0, lax_priority = 0, critical_priority = 0;
  Utilization utilization = 0;
  Weight weight = 0;
  Floor floor = 0;
  Laxity laxity = 0;
  int64_t deadline = 0, target = 0, guarantee = 0, period = 0, limit = 0, burst = 0;
  EXPECT_EQ(XHintGetPriority(queue, &priority), kXSchedSuccess);
  EXPECT_EQ(XHintGetDeadline(queue, &deadline), kXSchedSuccess);
  EXPECT_EQ(XHintGetLaxity(queue, &laxity, &lax_priority, &critical_priority), kXSchedSuccess);
  EXPECT_EQ(priority, PRIORITY_DEFAULT);
  EXPECT_EQ(deadline, NO_DEADLINE);
  EXPECT_EQ(laxity, NO_LAXITY);

  sched::Hints set;
  set.priority = 3;
  set.utilization = 40;
  set.deadline_us = 5000;
  set.laxity_us = 700;
  set.lax_priority = 1;
  set.critical_priority = 6;
  set.weight = 250;
  set.floor = 15;
  set.guarantee_us = 2000;
  set.period_us = 10'000;
  set.limit_us = 5000;
  set.burst_us = 1000;
  set.latency_target_us = 20'000;
  QueueOf(driver_)->SetHints(set);  // as the server does
  EXPECT_EQ(XHintGetPriority(queue, &priority), kXSchedSuccess);
  EXPECT_EQ(XHintGetUtilization(queue, &utilization), kXSchedSuccess);
  EXPECT_EQ(XHintGetWeight(queue, &weight), kXSchedSuccess);
  EXPECT_EQ(XHintGetReservation(queue, &guarantee, &period, &limit, &burst), kXSchedSuccess);
  EXPECT_EQ(XHintGetLatencyTarget(queue, &target), kXSchedSuccess);
  EXPECT_EQ(XHintGetFloor(queue, &floor), kXSchedSuccess);
  EXPECT_EQ(XHintGetLaxity(queue, &laxity, &lax_priority, &critical_priority), kXSchedSuccess);
  EXPECT_EQ(XHintGetDeadline(queue, &deadline), kXSchedSuccess);
  sched::Hints read;
  read.priority = priority;
  read.utilization = utilization;
  read.deadline_us = deadline;
  read.laxity_us = laxity;
  read.lax_priority = lax_priority;
  read.critical_priority = critical_priority;
  read.weight = weight;
  read.floor = floor;
  read.guarantee_us = guarantee;
  read.period_us = period;
  read.limit_us = limit;
  read.burst_us = burst;
  read.latency_target_us = target;
  EXPECT_EQ(read, set);

  EXPECT_EQ(XHintGetLaxity(queue, &laxity, nullptr, &critical_priority), kXSchedErrorInvalidValue);
  EXPECT_EQ(XHintGetPriority(queue, nullptr), kXSchedErrorInvalidValue);
  EXPECT_EQ(XHintGetPriority(queue + 1, &priority), kXSchedErrorNotFound);
}

// No errors, as in XSched 1.2.
TEST_F(HintApiTest, a_priority_out_of_its_range_is_the_nearest_one_and_another_hint_changes_nothing) {
  const XQueueHandle queue = Make(driver_);
  const sched::Hints before = hints();
  EXPECT_EQ(XHintUtilization(queue, UTILIZATION_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(XHintUtilization(queue, UTILIZATION_MIN - 1), kXSchedSuccess);
  EXPECT_EQ(XHintWeight(queue, WEIGHT_MIN - 1), kXSchedSuccess);
  EXPECT_EQ(XHintWeight(queue, WEIGHT_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(XHintReservation(queue, 2000, RESERVATION_PERIOD_MIN - 1, 0, 0), kXSchedSuccess);
  EXPECT_EQ(XHintReservation(queue, 2000, RESERVATION_PERIOD_MAX + 1, 0, 0), kXSchedSuccess);
  EXPECT_EQ(XHintReservation(queue, 2001, 2000, 0, 0), kXSchedSuccess) << "more than the period";
  EXPECT_EQ(XHintReservation(queue, 2000, 10'000, 1999, 0), kXSchedSuccess) << "a limit below the guarantee";
  EXPECT_EQ(XHintReservation(queue, 2000, 10'000, 5000, 5001), kXSchedSuccess) << "a burst above the limit";
  EXPECT_EQ(XHintReservation(queue, 0, 10'000, 0, 0), kXSchedSuccess) << "neither guarantee nor limit";
  EXPECT_EQ(XHintLatencyTarget(queue, -1), kXSchedSuccess);
  EXPECT_EQ(XHintLatencyTarget(queue, LATENCY_TARGET_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(XHintFloor(queue, FLOOR_MIN - 1), kXSchedSuccess);
  EXPECT_EQ(XHintFloor(queue, FLOOR_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(XHintDeadline(queue, -5), kXSchedSuccess);
  EXPECT_EQ(XHintDeadline(queue, DEADLINE_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(XHintDeadline(queue, INT64_MAX), kXSchedSuccess);
  EXPECT_EQ(XHintLaxity(queue, DEADLINE_MAX + 1, 1, 2), kXSchedSuccess);
  EXPECT_EQ(XHintTimeslice(TIMESLICE_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(hints(), before);
  EXPECT_EQ(XHintPriority(queue, PRIORITY_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(hints().priority, PRIORITY_MAX);
  EXPECT_EQ(XHintPriority(queue, PRIORITY_NO_EXECUTE - 1), kXSchedSuccess);
  EXPECT_EQ(hints().priority, PRIORITY_MIN);
  EXPECT_EQ(XHintPriority(queue, PRIORITY_NO_EXECUTE), kXSchedSuccess);
  EXPECT_EQ(hints().priority, PRIORITY_NO_EXECUTE);
  EXPECT_EQ(XHintLaxity(queue, -5, 0, PRIORITY_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(hints().laxity_us, NO_LAXITY);
  EXPECT_EQ(hints().critical_priority, PRIORITY_MAX);
}

TEST_F(HintApiTest, a_hint_for_a_queue_that_is_not_there_finds_nothing) {
  const XQueueHandle queue = Make(driver_);
  EXPECT_EQ(XHintPriority(queue + 1, 3), kXSchedErrorNotFound);
  XQueueDestroy(queue);
  EXPECT_EQ(XHintPriority(queue, 3), kXSchedErrorNotFound);
}

TEST_F(HintApiTest, a_priority_reaches_the_drivers_of_the_device) {
  static sem_t applied;
  sem_init(&applied, 0, 0);
  driver_.ops.apply_urgency = [](void*) {
    sem_post(&applied);
    return kXSchedSuccess;
  };
  const XQueueHandle queue = Make(driver_);
  Make(other_driver_);
  EXPECT_EQ(XHintPriority(queue, 3), kXSchedSuccess);
  EXPECT_EQ(sem_wait(&applied), 0) << "by the thread that calls drivers";
}

TEST_F(HintApiTest, a_timeslice_and_k_need_no_scheduler_and_unknown_schedulers_are_invalid) {
  ASSERT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
  EXPECT_EQ(XHintTimeslice(1000), kXSchedSuccess);
  EXPECT_EQ(XHintSetScheduler(kSchedulerUnknown, kPolicyUnknown), kXSchedErrorInvalidValue);
  EXPECT_EQ(XHintSetScheduler(kSchedulerMax, kPolicyUnknown), kXSchedErrorInvalidValue);
  EXPECT_EQ(XHintKDeadline(1), kXSchedSuccess);
  EXPECT_EQ(XHintKDeadline(0), kXSchedSuccess) << "and ignored";
}

}  // namespace
}  // namespace xsched::preempt::testing
