// The options of a latency target, and of the floor of those that have none.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "server/policy_names.h"
#include "xsched/types.h"

namespace xsched::cli {

struct LatencyOptions {
  std::optional<int64_t> latency_target_us;
  std::optional<int64_t> floor;
};

inline void AddLatencyOptions(CLI::App& command, LatencyOptions& options) {
  command
      .add_option("--latency-target-us", options.latency_target_us,
                  fmt::format("99 of 100 requests should take no longer than so many µs ({}); 0: no target",
                              server::ReadBy(&sched::HintsRead::latency_target)))
      ->check(CLI::Range(int64_t{NO_LATENCY_TARGET}, int64_t{LATENCY_TARGET_MAX}));
  command
      .add_option("--floor", options.floor,
                  fmt::format("percent of the device that queues without a latency target get together at "
                              "least, while this one is one of them ({})",
                              server::ReadBy(&sched::HintsRead::floor)))
      ->check(CLI::Range(FLOOR_MIN, FLOOR_MAX));
}

}  // namespace xsched::cli
