// Process utilization partition: one process runs at a time, with all of its queues, and each ready process
// gets time in proportion to its utilization.
//
// For programs or tenants that share a device in fixed proportions, whatever number of queues they have.
// Queues of one process never hold each other, so programs whose streams wait for each other suit it. The
// highest utilization of a process's queues counts.
//
// It fails where latency counts: a task waits for its turn, up to a round of time slices.
#include "sched/core/proportional_share.h"

namespace xsched::sched::pup {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyProcessUtilizationPartition,
    .name = "PUP",
    .summary = "process utilization partition: shares of the device's time, one process at a time",
    .hints = {.utilization = true, .timeslice = true},
    .granularity = Granularity::kProcess,
    .charges_overruns = true,
    .keeps_busy = true,
};

constinit const UtilizationShare policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::pup
