#include "sched/core/windows.h"

#include <utility>

namespace xsched::sched {

void Windows::LetGo(DeviceRecord& device, const SchedulerConfig& config, TimePoint now) {
  for (QueueRecord* queue : device.active) {
    if (queue->watch.counting()) queue->incidents += queue->watch.LetGo(now, config);
  }
  device.silence.Count(false, false, now);
}

void Windows::Find(const PolicySetting& setting, DeviceRecord& device) {
  device.window.valid = device.wide_window.valid = false;
  for (const QueueRecord* queue : device.active) {
    if (!queue->watch.window_open()) continue;
    const Claim claim = ClaimOf(*queue);
    TakeMoreUrgent(setting, device.window, claim);
    if (queue->watch.window_is_wide()) TakeMoreUrgent(setting, device.wide_window, claim);
  }
}

bool Windows::ChooseWide(const PolicySetting& setting) {
  const Claim* best = nullptr;
  for (const DeviceRecord* device : devices_) {
    const Claim& wide = device->wide_window;
    if (wide.valid && (best == nullptr || setting.HasBetterClaim(wide.hints, best->hints))) best = &wide;
  }
  if (best == nullptr) return std::exchange(wide_.valid, false);
  if (wide_ == *best) return false;
  wide_ = *best;
  return true;
}

void Windows::Release(const PolicySetting& setting, DeviceRecord& device) const {
  device.released_for.valid = device.window.valid;
  if (device.window.valid) device.released_for = device.window;
  if (!wide_.valid || wide_.device == &device) return;
  // It gains nothing if only one queue here is ready, which runs, or one with a better claim.
  int eligible = 0;
  for (const QueueRecord* queue : device.active) {
    if (!queue->IsEligible()) continue;
    if (setting.HasBetterClaim(ClaimOf(*queue).hints, wide_.hints)) return;
    ++eligible;
  }
  if (eligible > 1 || setting.ComparesAllDevices()) TakeMoreUrgent(setting, device.released_for, wide_);
}

}  // namespace xsched::sched
