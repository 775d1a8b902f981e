#include "server/usage.h"

#include <algorithm>
#include <new>

namespace xsched::server {

size_t RequestTimes::BucketOf(Duration time) noexcept {
  return static_cast<size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), time) - kBounds.begin());
}

Account& Accounts::At(uint64_t device, Priority priority, const std::string& device_name) noexcept try {
  if (Account* account = At({device, priority}, limit_, device_name)) return *account;
  const UsageKey of_device{.device = device, .others = true};
  if (!of_device.is_last()) {
    if (Account* account = At(of_device, 2 * limit_, device_name)) return *account;
  }
  has_others_ = true;
  return others_;
} catch (const std::bad_alloc&) {
  has_others_ = true;
  return others_;
}

Account* Accounts::At(const UsageKey& key, size_t limit, const std::string& device_name) {
  if (const auto found = accounts_.find(key); found != accounts_.end()) return &found->second;
  return accounts_.size() < limit ? &accounts_.emplace(key, Account{{}, device_name}).first->second : nullptr;
}

Accounts::Entry Accounts::After(const UsageKey* key) const {
  if (key != nullptr && key->is_last()) return {};
  const auto next = key == nullptr ? accounts_.begin() : accounts_.upper_bound(*key);
  if (next != accounts_.end()) return {next->first, &next->second};
  return has_others_ ? Entry{{.others = true}, &others_} : Entry{};
}

}  // namespace xsched::server
