// Finds which queues can ever hold each other, by the policy and their hints. A queue that no other can hold
// costs nothing.
#pragma once

#include <span>

namespace xsched::sched {

class FormerRivals;
class PolicySetting;
struct DeviceRecord;

// Sets can_hold, can_be_held, holds_own and held_by_own of all queues of these devices: one device or, if a
// policy compares all devices, all of them.
void RefreshRivals(const PolicySetting& setting, std::span<DeviceRecord* const> devices,
                   const FormerRivals& former);

}  // namespace xsched::sched
