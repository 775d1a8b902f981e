// The statistics of one queue: its state, its counters, and why it waits.
#pragma once

#include "sched/core/queue_record.h"

namespace xsched::sched {

QueueStats StatsOf(const PolicySetting& setting, const QueueRecord& queue, TimePoint now);

}  // namespace xsched::sched
