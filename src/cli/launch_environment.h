// The environment in which a program is scheduled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/latency_options.h"
#include "cli/reach.h"
#include "cli/reservation_options.h"
#include "sched/core/policy.h"

namespace xsched::cli {

struct LaunchOptions {
  bool preload = true;  // false: preloading would end the program (reach.h)
  std::optional<int64_t> priority;
  std::optional<int64_t> utilization;
  std::optional<int64_t> deadline_us;
  std::optional<int64_t> laxity_us;
  std::optional<int64_t> weight;
  ReservationOptions reservation;
  LatencyOptions latency;
  std::optional<int64_t> timeslice_us;
  std::optional<int64_t> level;
  std::optional<int64_t> threshold;
  std::optional<int64_t> batch_size;
  std::optional<uint64_t> memory;  // bytes of each device, for all processes of the program together
  std::string memory_account;      // the file in which they count; "": each process counts by itself
  std::string scheduler = "GLB";
  std::string policy;  // of the local scheduler (LCL)
  std::string route = "layer";
  std::string gang;  // the name of the program's job
  std::string job;   // likewise, if `gang` is empty and the program has no job yet
};

struct Variable {
  std::string name;
  std::optional<std::string> value;  // nullopt: the variable is unset
};

// `list` with `entry` first. Unchanged if it has `entry` already: a program under `xsched run` may call
// `xsched run` again, and one shim is enough.
inline std::string Prepended(const std::string& entry, const std::string& list) {
  if (list.empty()) return entry;
  if ((":" + list + ":").find(":" + entry + ":") != std::string::npos) return list;
  return entry + ":" + list;
}

// How much of LD_PRELOAD the runtimes of sanitizers take at its beginning. A program ends at its start if the
// runtime of its sanitizer is not the first library.
inline size_t LengthOfSanitizers(std::string_view preloaded) {
  constexpr std::string_view kRuntimes[] = {"libasan.",  "libtsan.",   "liblsan.",
                                            "libubsan.", "libhwasan.", "libclang_rt."};
  size_t length = 0;
  while (length < preloaded.size()) {
    const std::string_view entry = preloaded.substr(length, preloaded.find_first_of(" :", length) - length);
    const std::string_view name = entry.substr(entry.rfind('/') + 1);
    if (!entry.empty() &&
        std::ranges::none_of(kRuntimes, [&](auto runtime) { return name.starts_with(runtime); }))
      break;
    length = std::min(length + entry.size() + 1, preloaded.size());
  }
  return length;
}

// LD_PRELOAD with `entry`, behind sanitizers.
inline std::string Preloaded(const std::string& entry, const std::string& list) {
  const size_t sanitizers = LengthOfSanitizers(list);
  std::string first = list.substr(0, sanitizers);
  std::replace(first.begin(), first.end(), ' ', ':');  // Without looks between colons
  if (!first.empty() && first.back() != ':') first += ':';
  return first + Prepended(entry, list.substr(sanitizers));
}

// `list` without `entry`.
inline std::string Without(const std::string& entry, const std::string& list) {
  std::string rest = ":" + list + ":";
  for (size_t at; (at = rest.find(":" + entry + ":")) != std::string::npos;) rest.erase(at, entry.size() + 1);
  return rest.size() < 2 ? "" : rest.substr(1, rest.size() - 2);
}

inline std::string DefaultPolicy() { return sched::PolicyName(sched::kDefaultPolicy); }

// A shim that the program is to use.
struct Shim {
  std::string path;
  std::string layers;  // the variable in which a loader takes it as a layer; "": it is preloaded
};

// `current(name)`: the present value of a variable, or "".
template <typename Current>
std::vector<Variable> LaunchEnvironment(const LaunchOptions& options, const std::vector<Shim>& shims,
                                        Current&& current) {
  std::vector<Variable> variables = {{"XSCHED_AUTO_XQUEUE", "ON"}, {"XSCHED_SCHEDULER", options.scheduler}};
  auto number = [&](const char* name, const std::optional<int64_t>& value) {
    if (value) variables.push_back({std::string("XSCHED_AUTO_XQUEUE_") + name, std::to_string(*value)});
  };
  number("PRIORITY", options.priority);
  number("UTILIZATION", options.utilization);
  number("DEADLINE", options.deadline_us);
  number("LAXITY", options.laxity_us);
  number("WEIGHT", options.weight);
  // They are one hint together: with one of them, the program does not inherit the others.
  const auto reserved = [&](const char* name, const std::optional<int64_t>& value) {
    if (value) {
      number(name, value);
    } else if (options.reservation.Any()) {
      variables.push_back({std::string("XSCHED_AUTO_XQUEUE_") + name, std::nullopt});
    }
  };
  reserved("GUARANTEE", options.reservation.guarantee_us);
  reserved("PERIOD", options.reservation.period_us);
  reserved("LIMIT", options.reservation.limit_us);
  reserved("BURST", options.reservation.burst_us);
  number("LATENCY_TARGET", options.latency.latency_target_us);
  number("FLOOR", options.latency.floor);
  number("TIMESLICE", options.timeslice_us);
  number("LEVEL", options.level);
  number("THRESHOLD", options.threshold);
  number("BATCH_SIZE", options.batch_size);
  if (options.scheduler != "LCL") {
    // If it is set, the process uses the local scheduler, whatever XSCHED_SCHEDULER says.
    variables.push_back({"XSCHED_POLICY", std::nullopt});
  } else if (!options.policy.empty() || current("XSCHED_POLICY").empty()) {
    variables.push_back({"XSCHED_POLICY", options.policy.empty() ? DefaultPolicy() : options.policy});
  }
  if (options.memory) {
    variables.push_back({"XSCHED_MEMORY", std::to_string(*options.memory)});
    variables.push_back({"XSCHED_MEMORY_ACCOUNT", options.memory_account.empty()
                                                      ? std::nullopt
                                                      : std::optional(options.memory_account)});
  }
  // A program's children belong to its job, even if they are started by `xsched run`.
  if (!options.gang.empty()) {
    variables.push_back({"XSCHED_JOB", options.gang});
  } else if (!options.job.empty() && current("XSCHED_JOB").empty()) {
    variables.push_back({"XSCHED_JOB", options.job});
  }
  std::string preloaded = current("LD_PRELOAD");
  for (const Shim& shim : shims) {
    if (!shim.layers.empty() && options.route != "preload") {
      variables.push_back({shim.layers, Prepended(shim.path, current(shim.layers))});
      continue;
    }
    const std::string entry = ForPreloading(shim.path);
    preloaded = options.preload ? Preloaded(entry, preloaded) : Without(entry, preloaded);
  }
  if (preloaded.empty() && !current("LD_PRELOAD").empty()) {
    variables.push_back({"LD_PRELOAD", std::nullopt});
  } else if (preloaded != current("LD_PRELOAD")) {
    variables.push_back({"LD_PRELOAD", preloaded});
  }
  return variables;
}

// The variable of this process; "": not set.
inline std::string CurrentVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

inline void SetEnvironment(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (variable.value) {
      setenv(variable.name.c_str(), variable.value->c_str(), 1);
    } else {
      unsetenv(variable.name.c_str());
    }
  }
}

}  // namespace xsched::cli
