// Utilization partition: one queue runs at a time, and each ready queue gets time in proportion to its
// utilization.
//
// For programs that share a device in fixed proportions, such as experiments with one stream each. Time that
// one does not use goes to the others, in proportion. For programs with several streams see PUP.
//
// It fails where latency counts: a task waits for its turn, up to a round of time slices. On devices that do
// not divide their time by themselves, queues that could use the device together run one after another.
#include "sched/core/proportional_share.h"

namespace xsched::sched::up {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyUtilizationPartition,
    .name = "UP",
    .summary = "utilization partition: shares of the device's time, one queue at a time",
    .hints = {.utilization = true, .timeslice = true},
    .claim = ClaimBy::kShare,
    .charges_overruns = true,
    .keeps_busy = true,
};

constinit const UtilizationShare policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::up
