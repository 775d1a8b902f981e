#include "sched/core/windows.h"

namespace xsched::sched {

void Windows::LetGo(DeviceRecord& device, const SchedulerConfig& config, TimePoint now) {
  for (QueueRecord* queue : device.queues) {
    if (queue->watch.counting()) queue->incidents += queue->watch.LetGo(now, config);
  }
  device.silence.Count(false, false, now);
}

void Windows::Find(const Policy& policy, DeviceRecord& device) {
  device.window = device.lends = Claim{};
  for (const QueueRecord* queue : device.queues) {
    if (!queue->watch.window_open()) continue;
    const Claim claim = ClaimOf(*queue);
    TakeMoreUrgent(policy, device.window, claim);
    if (queue->watch.lends_elsewhere()) TakeMoreUrgent(policy, device.lends, claim);
  }
}

bool Windows::ChooseLender(const Policy& policy) {
  Claim best;
  for (const DeviceRecord* device : devices_) TakeMoreUrgent(policy, best, device->lends);
  if (best == lender_) return false;
  lender_ = best;
  return true;
}

void Windows::Release(const Policy& policy, DeviceRecord& device) const {
  device.released_for = device.window;
  if (!lender_.valid || lender_.device == &device) return;
  // Where only one queue has work, or one with a better claim has, nothing is gained by it.
  int eligible = 0;
  for (const QueueRecord* queue : device.queues) {
    if (!queue->IsEligible()) continue;
    if (HasBetterClaim(policy, ClaimOf(*queue).hints, lender_.hints)) return;
    ++eligible;
  }
  if (eligible > 1) TakeMoreUrgent(policy, device.released_for, lender_);
}

}  // namespace xsched::sched
