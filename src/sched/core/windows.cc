#include "sched/core/windows.h"

#include <algorithm>
#include <span>
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
  if (!device.watched && device.wide_windows.empty()) return;
  bool any_wide = false;
  for (QueueRecord* queue : device.active) {
    any_wide |= queue->watch.window_is_wide();
    if (queue->watch.window_open()) TakeMoreUrgent(setting, device.window, ClaimOf(*queue));
  }
  if (any_wide || !device.wide_windows.empty()) FindWide(setting, device);
}

void Windows::FindWide(const PolicySetting& setting, DeviceRecord& device) {
  const std::span<ProcessRecord* const> processes = device.slices.all();
  for (ProcessRecord* process : processes) process->wide_window = nullptr;
  for (const QueueRecord* queue : device.active) {
    if (!queue->watch.window_is_wide()) continue;
    const QueueRecord*& best = queue->process->wide_window;
    if (best == nullptr || setting.HasBetterClaim(ClaimOf(*queue).hints, ClaimOf(*best).hints)) best = queue;
  }
  size_t count = 0;
  for (const ProcessRecord* process : processes) {
    if (process->wide_window == nullptr) continue;
    const WideWindow window{process->id, process->tenant->id, ClaimOf(*process->wide_window)};
    const bool is_new = count == device.wide_windows.size();
    if (is_new && !device.wide_windows.Append(1)) break;  // out of memory: it acts on its own device only
    device.wide_changed |= is_new || device.wide_windows[count] != window;
    device.wide_windows[count++] = window;
  }
  device.wide_changed |= count != device.wide_windows.size();
  while (device.wide_windows.size() > count) device.wide_windows.Pop();
}

bool Windows::CollectWide(const PolicySetting& setting) {
  bool changed = std::exchange(changed_, false);
  for (DeviceRecord* device : devices_) changed |= std::exchange(device->wide_changed, false);
  if (changed) wide_.Collect(setting, devices_, turns_);
  return changed;
}

// A window of the device's own is among the wide ones as well. It changes nothing there: `window` is at least
// as urgent.
void Windows::ReleaseFor(const PolicySetting& setting, DeviceRecord& device, TimePoint now) const {
  device.released_for = device.window;
  if (!wide_.any().valid) return;
  const Contenders contenders = ContendersOn(setting, device);
  // If only one queue here is ready, it runs, and so no other gains anything by a window.
  if (contenders.count < 2 && !setting.ComparesAllDevices()) return;
  // Nor does it if one here has a better claim.
  const auto gains = [&](const Claim& claim) {
    return claim.valid && !HasBetterClaimThere(setting, device, claim);
  };
  Claim best = device.window;
  const Claim lasting = Lasting(setting, device, contenders.holder);
  if (gains(lasting)) TakeMoreUrgent(setting, best, lasting);
  device.released_for = best;
  if (!gains(wide_.any())) return;
  TakeMoreUrgent(setting, best, wide_.any());
  if (best != device.released_for && IsShortWindowOpen(device, now)) device.released_for = best;
}

// The most urgent queue whose window acts on the device for as long as it is open. `holder`: the tenant from
// which a window takes the device; null: from several.
Claim Windows::Lasting(const PolicySetting& setting, const DeviceRecord& device,
                       const TenantRecord* holder) const {
  if (setting.ComparesAllDevices()) return wide_.any();
  Claim best;
  if (holder != nullptr) TakeMoreUrgent(setting, best, wide_.OfTenant(holder->id));
  for (const ProcessRecord* process : device.slices.processes()) {
    if (!process->contends) continue;
    TakeMoreUrgent(setting, best, wide_.OfProcess(process->id));
    if (const JobId job = turns_.JobOf(process->id); job != JobId{})
      TakeMoreUrgent(setting, best, wide_.OfJob(job));
  }
  return best;
}

}  // namespace xsched::sched
