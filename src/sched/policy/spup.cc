// Strict process utilization partition: it does what PUP does. XSched 1.2 has no more than its name, and
// programs that ask for it find it here.
//
// "Strict" is what PUP is already: a share that a process does not use is not kept for later. It does not
// mean that the device stands idle while others have work: no policy here does that.
#include "sched/core/proportional_share.h"

namespace xsched::sched::spup {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyStrictProcessUtilizationPartition,
    .name = "SPUP",
    .summary = "strict process utilization partition: the same as PUP",
    .hints = {.utilization = true, .timeslice = true},
    .granularity = Granularity::kProcess,
    .charges_overruns = true,
    .keeps_busy = true,
};

constinit const UtilizationShare policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::spup
