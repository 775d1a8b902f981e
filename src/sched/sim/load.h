// What the programs of a simulation do: which processes have which queues on which devices, and when which
// commands come. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sched/core/types.h"
#include "sched/sim/device_parameters.h"

namespace xsched::sched::sim {

inline constexpr uint64_t kWithoutEnd = uint64_t{1} << 60;  // commands of a task
inline constexpr Duration kNoRepeat{-1};
// Task::waits_for: it waits for something that never comes, and that the scheduler does not know.
inline constexpr int kForEver = -2;

// Some commands of equal length that come together. Its latency is the time from its arrival to its end.
struct Task {
  Duration at{};                // since the beginning; or, if it `follows`, since the end of the task before
  bool follows = false;         // it comes because the task before has ended: a closed loop
  int waits_for = -1;           // a queue: it does not begin before that one has done what it has been given
  uint64_t commands = 1;        // kWithoutEnd: there is always work, until `until`
  Duration command{};           // length of each on the device
  Duration launch{};            // between two launches: a longer one than a command leaves the device idle
  Duration repeat = kNoRepeat;  // it comes again so long after its end, until `until`
  Duration until{};
};

struct HintChange {
  Duration at{};
  Hints hints;
};

struct QueueLoad {
  std::string name;
  int process = 0;
  int device = 0;
  int level = 1;
  Duration from{};               // the scheduler knows it from then on,
  std::optional<Duration> gone;  // until then, and until it has done its work; none: to the end of the load
  Hints hints;                   // at first
  std::vector<HintChange> changes;  // in the order of time
  std::vector<Task> tasks;          // in the order of time

  const Hints& HintsAt(Duration at) const {
    const auto later =
        std::upper_bound(changes.begin(), changes.end(), at,
                         [](Duration time, const HintChange& change) { return time < change.at; });
    return later == changes.begin() ? hints : std::prev(later)->hints;
  }
  // Calls `act` with all hints that it has at one time or another.
  template <typename Act>
  void ForEachHints(Act&& act) const {
    act(hints);
    for (const HintChange& change : changes) act(change.hints);
  }
};

struct ProcessLoad {
  std::string name;
  uint64_t job = 0;     // 0: none
  uint64_t tenant = 0;  // 0: none is known; from 1 on
};

struct Load {
  std::vector<DeviceParameters> devices;
  std::vector<ProcessLoad> processes;
  std::map<uint64_t, TenantShare> tenants;      // those that are not here have the default
  std::map<uint64_t, Priority> max_priorities;  // that tenants may claim; those that are not here: any
  std::vector<std::string> tenant_names;        // of tenant 1 and further ones
  std::vector<QueueLoad> queues;
  Duration length{};
};

}  // namespace xsched::sched::sim
