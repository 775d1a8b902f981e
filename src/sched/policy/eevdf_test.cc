// Earliest eligible virtual deadline first: shares by weight, lag, and what sleepers keep.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sched/sim/simulator.h"
#include "sched/testing/busy_device.h"
#include "sched/testing/timeline.h"

namespace xsched::sched::eevdf {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kSlice = PolicyDevice::kTimeslice;

const Policy& Eligible() { return *FindPolicy(kPolicyEarliestEligibleVirtualDeadlineFirst); }

QueueView Weighted(uint64_t id, Weight weight, uint64_t process) {
  return View(id, {.weight = weight}, ProcessId{process});
}

TEST(EarliestEligible, processes_get_time_by_the_highest_weight_of_their_queues) {
  BusyDevice device(Eligible(), {Weighted(1, 300, 1), Weighted(2, 50, 1), Weighted(3, 100, 2)});
  device.Pass(seconds(4));
  EXPECT_NEAR(InSeconds(device[0].service + device[1].service), 3, 0.01);
  EXPECT_NEAR(InSeconds(device[2].service), 1, 0.01);
  EXPECT_NEAR(InSeconds(device[0].service), 3 * 6 / 7.0, 0.01) << "within the process, 300 : 50";
}

TEST(EarliestEligible, the_lowest_weight_gets_on_beside_the_highest) {
  BusyDevice device(Eligible(), {Weighted(1, WEIGHT_MAX, 1), Weighted(2, WEIGHT_MIN, 2)});
  device.Pass(seconds(200));
  EXPECT_NEAR(InSeconds(device[1].service), 200.0 / 10'001, 2 * InSeconds(kSlice));
  EXPECT_GT(device[1].service, Duration::zero());
}

TEST(EarliestEligible, one_alone_is_never_asked_again) {
  PolicyDevice device = {Weighted(1, 100, 1)};
  EXPECT_EQ(device.Decide(Eligible()), kNever);
  EXPECT_TRUE(device[0].run);
}

TEST(EarliestEligible, a_time_slice_is_not_interrupted_by_events) {
  BusyDevice device(Eligible(), {Weighted(1, 100, 1), Weighted(2, 100, 2)});
  device.Pass(milliseconds(1));
  const bool first = device[0].run;
  for (int i = 0; i < 30; ++i) {
    device.Pass(microseconds(100));
    EXPECT_EQ(device[0].run, first);
  }
}

// The lag of a queue is what it should have received less what it has received.
TEST(EarliestEligible, no_lag_is_larger_than_a_time_slice_while_queues_always_have_work) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    BusyDevice device(Eligible(),
                      {Weighted(1, 1, 1), Weighted(2, 1, 2), Weighted(3, 1, 3), Weighted(4, 1, 4)});
    double weights = 0;
    for (QueueView& queue : device.ready())
      weights += queue.hints.weight = 1 + static_cast<int>(random() % 400);
    for (int i = 0; i < 2000; ++i) {
      device.Pass(microseconds(1 + random() % 3000));
      for (const QueueView& queue : device.ready()) {
        const double should = InSeconds(device.now - PolicyDevice::kNow) * queue.hints.weight / weights;
        // A slice that would end sooner is extended to the shortest turn.
        ASSERT_LE(std::abs(should - InSeconds(queue.service)),
                  InSeconds(kSlice + microseconds(TIMESLICE_MIN)))
            << "seed " << seed << ", step " << i;
      }
    }
  }
}

TEST(EarliestEligible, who_sleeps_is_owed_no_more_than_a_time_slice) {
  BusyDevice device(Eligible(), {Weighted(1, 100, 1), Weighted(2, 100, 2)});
  device.Pass(seconds(1));
  const QueueView sleeper = device.Leave(1);
  device.Pass(seconds(10));
  device.Return(sleeper);
  const Duration before = device[0].service;
  device.Pass(milliseconds(100));
  EXPECT_GE(device[0].service - before, milliseconds(50) - 2 * kSlice);
  EXPECT_LE(device[0].service - before, milliseconds(50) + 2 * kSlice);
}

// Both compete for 3 ms at a time, which is less than a time slice.
TEST(EarliestEligible, who_sleeps_loses_nothing_of_what_it_was_owed) {
  BusyDevice device(Eligible(), {Weighted(1, 100, 1), Weighted(2, 100, 2)});
  Duration competing{};
  for (int i = 0; i < 200; ++i) {
    device.Pass(milliseconds(3));
    competing += milliseconds(3);
    device.Decide();
    const QueueView sleeper = device.Leave(1);
    device.Pass(milliseconds(7));
    device.Return(sleeper);
  }
  EXPECT_GE(device[1].service, competing / 2 - kSlice);
}

// Otherwise whoever pauses for a moment after each piece of work would get more than its share.
TEST(EarliestEligible, a_short_pause_cancels_no_debt) {
  BusyDevice device(Eligible(), {Weighted(1, 100, 1), Weighted(2, 100, 2)});
  for (int i = 0; i < 500; ++i) {
    // It works for 4 ms whenever it may, and pauses for 100 µs.
    const Duration before = device[1].service;
    for (int steps = 0; device[1].service - before < milliseconds(4) && steps < 1000; ++steps)
      device.Pass(microseconds(100));
    const QueueView pausing = device.Leave(1);
    device.Pass(microseconds(100));
    device.Return(pausing);
  }
  EXPECT_LE(InSeconds(device[1].service) / InSeconds(device.now - PolicyDevice::kNow), 0.51);
}

TEST(EarliestEligible, a_debt_is_paid_while_its_owner_sleeps) {
  BusyDevice device(Eligible(), {Weighted(1, 100, 1), Weighted(2, 100, 2)});
  for (int i = 0; i < 50; ++i) {
    const Duration before = device[1].service;
    Duration waited{};
    for (; device[1].service == before && waited < seconds(1); waited += microseconds(100))
      device.Pass(microseconds(100));
    EXPECT_LE(waited, kSlice + microseconds(200)) << "the slice of the other one ends first";
    for (int steps = 0; device[1].service - before < kSlice && steps < 1000; ++steps)
      device.Pass(microseconds(100));
    const QueueView sleeper = device.Leave(1);  // it has had half a time slice too much
    device.Pass(milliseconds(50));
    device.Return(sleeper);
  }
}

TEST(EarliestEligible, a_changed_weight_counts_from_now_on) {
  BusyDevice device(Eligible(), {Weighted(1, 100, 1), Weighted(2, 100, 2)});
  device.Pass(seconds(10));
  device[0].hints.weight = 900;
  device[0].newly_ready = true;
  const Duration before = device[0].service;
  device.Pass(seconds(1));
  EXPECT_NEAR(InSeconds(device[0].service - before), 0.9, 0.01);
}

class Streams : public Timeline {
 protected:
  Streams() {
    scheduler_.SetPolicy(Eligible());
    sliceable_ = false;
  }
};

TEST_F(Streams, have_slices_of_a_shorter_timeslice_at_once) {
  scheduler_.SetTimeslice(seconds(10));
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 20);
  Busy(1);
  Busy(2);
  for (int i = 0; i < 1100; ++i) {
    if (i == 1000) {
      EXPECT_EQ(StatsOf(2).service, Duration::zero());
      scheduler_.SetTimeslice(milliseconds(5));
      Decide();
    }
    RetireOne(Runs(1) ? 1 : 2);
    Pass(milliseconds(1));
  }
  EXPECT_GE(StatsOf(2).service, milliseconds(90));
}

// Otherwise a program that makes and releases streams would begin anew with each of them.
TEST_F(Streams, that_come_and_go_get_their_process_no_more_than_its_share) {
  Add(1, 0, kGpu, 10);
  Busy(1);
  uint64_t next = 100;
  Add(next, 0, kGpu, 20);
  Busy(next);
  for (int i = 0; i < 400; ++i) {
    Pass(milliseconds(1));
    if (!Runs(next)) {
      Progress(1, kEndless, retired_[1] + 10);
      continue;
    }
    Finish(next);
    scheduler_.RemoveQueue(QueueId{next}, now_);
    Decide();
    Add(++next, 0, kGpu, 20);
    Busy(next);
  }
  EXPECT_NEAR(InSeconds(StatsOf(1).service), 0.2, InSeconds(kSlice));
}

// One runs in the other's turns, because that waits for it. This is time of their process.
TEST_F(Streams, that_wait_for_each_other_get_their_process_no_more_than_its_share) {
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  const Dependency waits{QueueId{1}, kEndless};
  scheduler_.SetDependencies(QueueId{2}, {&waits, 1});
  Decide();
  int together = 0;
  for (int i = 0; i < 800; ++i) {
    Pass(microseconds(500));
    together += Runs(1) && Runs(2);
    for (uint64_t id : {1, 2, 3}) {
      if (Runs(id)) Progress(id, kEndless, retired_[id] + 10);
    }
  }
  EXPECT_GT(together, 100);
  EXPECT_NEAR(InSeconds(StatsOf(3).service), 0.2, InSeconds(kSlice));
}

TEST_F(Streams, keep_the_weight_of_their_process_while_the_heaviest_of_them_is_idle) {
  Add(1, 0, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 0, kGpu, 20);
  scheduler_.SetHints(QueueId{2}, {.weight = 300});
  Busy(1);
  Busy(3);
  for (int i = 0; i < 400; ++i) {
    Pass(milliseconds(1));
    RetireOne(Runs(1) ? 1 : 3);
  }
  EXPECT_NEAR(InSeconds(StatsOf(1).service), 0.3, InSeconds(kSlice));
}

TEST(EarliestEligible, slices_have_the_proportion_of_the_weights_or_only_the_running_one_is_on_the_device) {
  ProcessView processes[2] = {
      {.id = ProcessId{1}, .priority = 0, .utilization = 100, .weight = 300, .facts = {}, .slice = {}},
      {.id = ProcessId{2}, .priority = 0, .utilization = 100, .weight = 100, .facts = {}, .slice = {}}};
  EXPECT_EQ(Eligible().Divide(processes), Division::kAlone);
  EXPECT_NEAR(InSeconds(processes[0].slice) / InSeconds(processes[1].slice), 3, 0.001);
  processes[0].weight = WEIGHT_MAX;
  processes[1].weight = WEIGHT_MIN;
  EXPECT_EQ(Eligible().Divide(processes), Division::kBesideHolding);
  EXPECT_EQ(processes[0].slice, kShortestSlice);
  EXPECT_EQ(processes[1].slice, kShortestSlice);
}

}  // namespace
}  // namespace xsched::sched::eevdf
