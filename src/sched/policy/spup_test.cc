// Strict process utilization partition: the same as PUP.
#include <gtest/gtest.h>

#include "sched/sim/simulator.h"

namespace xsched::sched::spup {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(StrictProcessUtilizationPartition, gives_every_queue_what_pup_gives_it) {
  auto queue = [](int process, Utilization utilization, Duration period) {
    SimulatedQueue made;
    made.hints.utilization = utilization;
    made.command = microseconds(100);
    made.process = process;
    made.period = period;
    return made;
  };
  const std::vector<SimulatedQueue> queues = {queue(1, 60, Duration::zero()), queue(1, 10, milliseconds(7)),
                                              queue(2, 40, Duration::zero()), queue(3, 90, milliseconds(30))};
  const SimulationResult strict =
      Simulate(*FindPolicy(kPolicyStrictProcessUtilizationPartition), queues, milliseconds(500));
  const SimulationResult usual =
      Simulate(*FindPolicy(kPolicyProcessUtilizationPartition), queues, milliseconds(500));
  for (size_t i = 0; i < queues.size(); ++i) {
    EXPECT_EQ(strict.queues[i].device_time, usual.queues[i].device_time) << i;
    EXPECT_EQ(strict.queues[i].latencies, usual.queues[i].latencies) << i;
  }
}

}  // namespace
}  // namespace xsched::sched::spup
