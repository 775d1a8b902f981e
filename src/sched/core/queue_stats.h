// What is told of one queue: how it stands, and why it waits.
#pragma once

#include "sched/core/queue_record.h"

namespace xsched::sched {

QueueStats StatsOf(const Policy& policy, const QueueRecord& queue, TimePoint now);

}  // namespace xsched::sched
