// Random histories for rapidcheck, and how a failing one is made smaller.
#pragma once

#include <rapidcheck.h>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

rc::Gen<History> RandomHistory();
// With RESERVE, and with limits.
rc::Gen<History> RandomHistoryWithLimits();
// With processes of two tenants.
rc::Gen<History> RandomHistoryWithTenants();

}  // namespace xsched::sched::sim
