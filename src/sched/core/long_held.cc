#include "sched/core/long_held.h"

#include <algorithm>

namespace xsched::sched {
namespace {

constexpr Duration kLong = std::chrono::milliseconds(20);

}  // namespace

TimePoint LongHeld::From(TimePoint held_since) { return held_since + kLong; }

bool LongHeld::FindAnew(TimePoint now) {
  found_.Clear();
  const bool others = devices_.size() > 1;
  for (DeviceRecord* device : devices_) {
    if (!others || device->held_since == kNever || From(device->held_since) > now) continue;
    size_t at = found_.size();
    while (at > 0 && found_[at - 1].device->held_since > device->held_since) --at;
    found_.Insert(at, device->leader == nullptr ? Claim{.device = device} : ClaimOf(*device->leader));
  }
  if (std::equal(found_.begin(), found_.end(), leaders_.begin(), leaders_.end())) return false;
  leaders_.Clear();
  for (const Claim& leader : found_) {
    [[maybe_unused]] bool pushed = leaders_.Push(leader);
  }
  return true;
}

TimePoint LongHeld::Search(const PolicySetting& setting, const QueueRecord& queue) const {
  TimePoint since = kNever;
  for (const Claim& leader : leaders_) {
    if (leader.device == queue.device) continue;
    if (leader.valid && setting.HasBetterClaim(leader.hints, ClaimOf(queue).hints)) continue;
    // This decision may have let everybody run there already, or may have begun another hold.
    since = std::min(since, leader.device->held_since);
  }
  return since;
}

}  // namespace xsched::sched
