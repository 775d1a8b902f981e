#include "sched/core/wide_windows.h"

#include <algorithm>

namespace xsched::sched {

void WideWindows::Collect(const PolicySetting& setting, const Array<DeviceRecord*>& devices,
                          const Turns& turns) {
  any_ = Claim{};
  claims_.Clear();
  for (Array<Place>* places : {&by_process_, &by_tenant_, &by_job_}) places->Clear();
  for (const DeviceRecord* device : devices) {
    for (const WideWindow& window : device->wide_windows) {
      if (!claims_.Push(window.claim)) break;
      TakeMoreUrgent(setting, any_, window.claim);
      Add(by_process_, static_cast<uint64_t>(window.process));
      Add(by_tenant_, static_cast<uint64_t>(window.tenant));
      if (const JobId job = turns.JobOf(window.process); job != JobId{})
        Add(by_job_, static_cast<uint64_t>(job));
    }
  }
  for (Array<Place>* places : {&by_process_, &by_tenant_, &by_job_}) KeepMostUrgent(setting, *places);
}

// The claim that was pushed last.
void WideWindows::Add(Array<Place>& places, uint64_t key) const {
  [[maybe_unused]] const bool pushed = places.Push({key, claims_.size() - 1});
}

void WideWindows::KeepMostUrgent(const PolicySetting& setting, Array<Place>& places) const {
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.key != b.key ? a.key < b.key : a.claim < b.claim;
  });
  size_t count = 0;
  for (const Place& place : places) {
    if (count == 0 || places[count - 1].key != place.key) {
      places[count++] = place;
    } else if (Place& best = places[count - 1];
               setting.HasBetterClaim(claims_[place.claim].hints, claims_[best.claim].hints)) {
      best = place;
    }
  }
  while (places.size() > count) places.Pop();
}

const Claim& WideWindows::Of(const Array<Place>& places, uint64_t key) const {
  const Place* place = std::lower_bound(places.begin(), places.end(), key,
                                        [](const Place& at, uint64_t wanted) { return at.key < wanted; });
  return place == places.end() || place->key != key ? none_ : claims_[place->claim];
}

}  // namespace xsched::sched
