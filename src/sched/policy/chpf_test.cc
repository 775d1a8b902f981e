// CPU highest priority first: processes by what the CPU's scheduler thinks of them.
#include <gtest/gtest.h>

#include "sched/testing/timeline.h"

namespace xsched::sched::chpf {
namespace {

using std::chrono::milliseconds;

class CpuHighestPriorityFirst : public Timeline {
 protected:
  CpuHighestPriorityFirst() {
    scheduler_.SetPolicy(*FindPolicy(kPolicyCPUHighestPriorityFirst));
    sliceable_ = false;
  }
  void Set(uint64_t id, int cpu_priority) {
    scheduler_.SetFacts(QueueId{id}, {.cpu_priority = cpu_priority});
    Decide();
  }

  static constexpr int kOfNice5 = -5;
  static constexpr int kOfNiceMinus20 = 20;
  static constexpr int kLowestRealTime = 22;
};

TEST_F(CpuHighestPriorityFirst, real_time_comes_before_the_best_nice_value_and_that_before_others) {
  Add(1, 0);
  Add(2, 0);
  Add(3, 0);
  Set(1, kOfNice5);
  Set(2, kOfNiceMinus20);
  Set(3, kLowestRealTime);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  EXPECT_TRUE(!Runs(1) && !Runs(2) && Runs(3));
  Finish(3);
  Pass(milliseconds(1));
  EXPECT_TRUE(!Runs(1) && Runs(2));
  Finish(2);
  Pass(milliseconds(1));
  EXPECT_TRUE(Runs(1));
}

TEST_F(CpuHighestPriorityFirst, equals_run_at_the_same_time_and_priorities_of_queues_do_not_count) {
  Add(1, 9, kGpu, 10);
  Add(2, 0, kGpu, 10);
  Add(3, 5, kGpu, 20);
  for (uint64_t id : {1, 2, 3}) Busy(id);
  EXPECT_TRUE(Runs(1) && Runs(2) && Runs(3));
}

TEST_F(CpuHighestPriorityFirst, a_renice_counts_at_once) {
  Add(1, 0);
  Add(2, 0);
  Busy(1);
  Busy(2);
  EXPECT_TRUE(Runs(1) && Runs(2));
  Set(1, kOfNice5);
  EXPECT_TRUE(!Runs(1) && Runs(2));
}

TEST_F(CpuHighestPriorityFirst, the_device_is_given_to_the_most_urgent_process_by_slices_too) {
  sliceable_ = true;
  Add(1, 0);
  Add(2, 0);
  Set(1, kLowestRealTime);
  Busy(1);
  Busy(2);
  EXPECT_GT(SliceOf(1), SliceOf(2));
}

}  // namespace
}  // namespace xsched::sched::chpf
