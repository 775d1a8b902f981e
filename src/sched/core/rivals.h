// Finds which queues can ever hold each other, by the policy and their hints. A queue that no other can hold
// costs nothing.
#pragma once

#include <span>

namespace xsched::sched {

class FormerRivals;
class PolicySetting;
struct DeviceRecord;

// Sets the rivalries of all queues of these devices: one device or, if a policy compares all devices, all of
// them. Those for which they change take part in the next decision.
void RefreshRivals(const PolicySetting& setting, std::span<DeviceRecord* const> devices,
                   const FormerRivals& former);

}  // namespace xsched::sched
