#include "sched/core/windows.h"

#include <algorithm>
#include <utility>

namespace xsched::sched {
namespace {

// What windows that do not act for as long as they are open have of a device's time, all together: 5 %.
constexpr Duration kShortWindow = std::chrono::milliseconds(10);
constexpr Duration kShortWindowEvery = std::chrono::milliseconds(200);

// The queues of a device that may want to run, as far as wide windows of other devices depend on them.
// ProcessRecord::contends says whose they are.
struct Contenders {
  int count = 0;
  // The tenant of all queues with the best claim; null: they are of several.
  const TenantRecord* holder = nullptr;
};

Contenders ContendersOn(const PolicySetting& setting, const DeviceRecord& device) {
  Contenders found;
  Claim best;
  for (ProcessRecord* process : device.slices.processes()) process->contends = false;
  for (const QueueRecord* queue : device.active) {
    if (!queue->IsEligible()) continue;
    ++found.count;
    queue->process->contends = true;
    const Claim claim = ClaimOf(*queue);
    const TenantRecord* tenant = queue->process->tenant;
    if (!best.valid || setting.HasBetterClaim(claim.hints, best.hints)) {
      best = claim;
      found.holder = tenant;
    } else if (tenant != found.holder && !setting.HasBetterClaim(best.hints, claim.hints)) {
      found.holder = nullptr;
    }
  }
  return found;
}

bool HasBetterClaimThere(const PolicySetting& setting, const DeviceRecord& device, const Claim& claim) {
  return std::any_of(device.active.begin(), device.active.end(), [&](const QueueRecord* queue) {
    return queue->IsEligible() && setting.HasBetterClaim(ClaimOf(*queue).hints, claim.hints);
  });
}

// Begins a short window on the device when it is time. Returns whether one is open.
bool IsShortWindowOpen(DeviceRecord& device, TimePoint now) {
  TimePoint& since = device.short_window_since;
  if (now >= since + kShortWindowEvery) since = now;
  const bool open = now < since + kShortWindow;
  device.release_at = since + (open ? kShortWindow : kShortWindowEvery);
  return open;
}

}  // namespace

void Windows::LetGo(DeviceRecord& device, const SchedulerConfig& config, TimePoint now) {
  for (QueueRecord* queue : device.active) {
    if (queue->watch.counting()) queue->incidents += queue->watch.LetGo(now, config);
  }
  device.silence.Count(false, false, now);
}

void Windows::Find(const PolicySetting& setting, DeviceRecord& device) {
  device.window.valid = false;
  device.wide_windows = 0;
  for (QueueRecord* queue : device.active) {
    const bool wide = queue->watch.window_is_wide();
    const Priority priority = wide ? queue->priority : Priority{};
    device.wide_changed |= std::exchange(queue->wide, wide) != wide;
    device.wide_changed |= std::exchange(queue->wide_priority, priority) != priority;
    device.wide_windows += wide;
    if (queue->watch.window_open()) TakeMoreUrgent(setting, device.window, ClaimOf(*queue));
  }
}

bool Windows::WideOnesChanged() const {
  bool changed = false;
  for (DeviceRecord* device : devices_) changed |= std::exchange(device->wide_changed, false);
  return changed;
}

void Windows::Release(const PolicySetting& setting, DeviceRecord& device, TimePoint now) const {
  device.released_for = device.window;
  device.release_at = kNever;
  const bool any_elsewhere = std::any_of(devices_.begin(), devices_.end(), [&](const DeviceRecord* other) {
    return other != &device && other->wide_windows != 0;
  });
  if (!any_elsewhere) return;
  const Contenders contenders = ContendersOn(setting, device);
  // If only one queue here is ready, it runs, and so no other gains anything by a window.
  if (contenders.count < 2 && !setting.ComparesAllDevices()) return;
  const Wide wide = FindWide(setting, device, contenders.holder);
  // Nor does it if one here has a better claim.
  const auto gains = [&](const Claim& claim) {
    return claim.valid && !HasBetterClaimThere(setting, device, claim);
  };
  Claim best = device.window;
  if (gains(wide.lasting)) TakeMoreUrgent(setting, best, wide.lasting);
  device.released_for = best;
  if (!gains(wide.any)) return;
  TakeMoreUrgent(setting, best, wide.any);
  if (best != device.released_for && IsShortWindowOpen(device, now)) device.released_for = best;
}

// `holder`: the tenant from which a window on the device takes it; null: from several.
Windows::Wide Windows::FindWide(const PolicySetting& setting, const DeviceRecord& device,
                                const TenantRecord* holder) const {
  Wide found;
  const auto lasts = [&](const ProcessRecord& process) {
    return setting.ComparesAllDevices() || (holder != nullptr && holder->id == process.tenant->id) ||
           MayWaitFor(device, process);
  };
  for (const DeviceRecord* other : devices_) {
    if (other == &device || other->wide_windows == 0) continue;
    // Asked once for each process, however many queues it has.
    for (ProcessRecord* process : other->slices.processes()) process->window_lasts.reset();
    for (const QueueRecord* queue : other->active) {
      if (!queue->wide) continue;
      const Claim claim = ClaimOf(*queue);
      TakeMoreUrgent(setting, found.any, claim);
      std::optional<bool>& window_lasts = queue->process->window_lasts;
      if (!window_lasts) window_lasts = lasts(*queue->process);
      if (*window_lasts) TakeMoreUrgent(setting, found.lasting, claim);
    }
  }
  return found;
}

// The process, or one of its job, has work on the device.
bool Windows::MayWaitFor(const DeviceRecord& device, const ProcessRecord& process) const {
  const ProcessRecord* same = device.slices.Find(process.id);
  if (same != nullptr && same->contends) return true;
  const JobId job = turns_.JobOf(process.id);
  if (job == JobId{}) return false;
  const auto& processes = device.slices.processes();
  return std::any_of(processes.begin(), processes.end(), [&](const ProcessRecord* other) {
    return other->contends && turns_.JobOf(other->id) == job;
  });
}

}  // namespace xsched::sched
