// What users and processes have had of the devices: counters that only grow, for metrics.
//
// Each account counts the queues of one user or one process, with one priority, on one device. Clients choose
// devices and priorities, so the number of accounts is limited: what is beyond the limit is counted in one
// account for all other priorities on its device, and if there are too many of these, in one for all others.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>

#include "base/clock.h"
#include "sched/core/types.h"

namespace xsched::server {

// How long requests took, in buckets.
struct RequestTimes {
  // The longest time of each bucket; the last bucket has none.
  static constexpr std::array<Duration, 16> kBounds = [] {
    using std::chrono::microseconds;
    return std::array<Duration, 16>{
        microseconds(100),       microseconds(250),       microseconds(500),       microseconds(1'000),
        microseconds(2'500),     microseconds(5'000),     microseconds(10'000),    microseconds(25'000),
        microseconds(50'000),    microseconds(100'000),   microseconds(250'000),   microseconds(500'000),
        microseconds(1'000'000), microseconds(2'500'000), microseconds(5'000'000), microseconds(10'000'000)};
  }();

  static size_t BucketOf(Duration time) noexcept;
  // So many of the same length.
  void Add(Duration time, size_t bucket, uint32_t count = 1) noexcept {
    counts[bucket] += count;
    sum += time * count;
  }

  uint64_t count() const noexcept { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }

  std::array<uint64_t, kBounds.size() + 1> counts{};
  Duration sum{};
};

struct Usage {
  Duration service{};  // device time received
  // Time with work and without the device, by reason (sched::WaitReason).
  Duration held{};
  Duration turn{};
  Duration off_device{};
  Duration limited{};
  uint64_t commands = 0;  // that are known to have retired
  uint64_t holds = 0;
  uint64_t turns = 0;  // that ended
  uint64_t incidents = 0;
  RequestTimes requests;
};

struct UsageKey {
  uint64_t device = 0;
  Priority priority = 0;
  bool others = false;  // beyond the limit: all other priorities, and without a device, all other devices

  bool is_last() const { return others && device == 0; }
  auto operator<=>(const UsageKey&) const = default;
};

struct Account {
  Usage usage;
  std::string device_name;  // as the first of its queues reported it
};

// The accounts of one user or process. An account stays where it is as long as this object lives.
class Accounts {
 public:
  // `limit`: how many there are at most, beside as many for other priorities of a device, and the one for all
  // others.
  explicit Accounts(size_t limit) : limit_(limit) {}
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;

  // The account for this device and priority, or at the limit that for all other priorities of the device, or
  // that for all others, also if memory runs out.
  Account& At(uint64_t device, Priority priority, const std::string& device_name) noexcept;
  // The first account behind `key`, or behind none; null: there are no more.
  struct Entry {
    UsageKey key;
    const Account* account;
  };
  Entry After(const UsageKey* key) const;
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (Entry entry = After(nullptr); entry.account != nullptr; entry = After(&entry.key))
      visit(entry.key, *entry.account);
  }

 private:
  // Null: at this number of accounts there is no such account, and none can be made.
  Account* At(const UsageKey& key, size_t limit, const std::string& device_name);

  const size_t limit_;
  std::map<UsageKey, Account> accounts_;
  Account others_;
  bool has_others_ = false;
};

}  // namespace xsched::server
