// The policies of this build, each a constant in a file of its own. To add one: its file, a line here, a line
// in registry.cc.
#pragma once

#include "sched/core/policy.h"

namespace xsched::sched {

const Policy& HighestPriorityFirstPolicy();
const Policy& UtilizationPartitionPolicy();

}  // namespace xsched::sched
