// Random histories for rapidcheck, and how a failing one is made smaller.
#pragma once

#include <rapidcheck.h>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

rc::Gen<History> RandomHistory();

}  // namespace xsched::sched::sim
