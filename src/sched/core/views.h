// What a policy is shown of a device, and what it has decided: for each queue, for each process with all of
// its queues, or for each tenant with all of its processes (Granularity). `layer` is the policy's place in
// the chain (PolicySetting).
#pragma once

#include "sched/core/queue_record.h"

namespace xsched::sched {

// What one who does all that `one` and `other` do would ask for.
Hints CombineHints(const Hints& one, const Hints& other);

// Sets the hints of the device's processes to those of all of their queues, and likewise those of its
// tenants.
void RefreshHintsOfGroups(DeviceRecord& device, bool of_tenants);

// Fills device.views from the eligible queues that the former policies let run, for that policy. `gaps`:
// which queues leave gaps. REQUIRES: device.views has room for all; Account was called.
void MakeViews(DeviceRecord& device, TimePoint now, size_t layer, Granularity by, const PolicyInfo& policy,
               bool gaps);
// Takes over until when those queues are limited.
void TakeLimits(DeviceRecord& device, size_t layer, Granularity by);
// Lets those queues run as the views say.
void TakeDecision(DeviceRecord& device, size_t layer, Granularity by);

}  // namespace xsched::sched
