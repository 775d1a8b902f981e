// Which queues of a device can hold each other at all, by the policy and their hints. A queue that no other
// can hold costs nothing.
#pragma once

namespace xsched::sched {

class Policy;
struct DeviceRecord;

// Sets can_hold, can_be_held and held_by_own of all queues of the device.
void RefreshRivals(const Policy& policy, DeviceRecord& device);

}  // namespace xsched::sched
