// Random histories for rapidcheck, and how one that fails is made smaller.
#pragma once

#include <rapidcheck.h>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

rc::Gen<History> RandomHistory();

}  // namespace xsched::sched::sim
