// The options of a priority and of a share in percent.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "server/policy_names.h"
#include "xsched/types.h"

namespace xsched::cli {

// Options: has `priority` and `utilization`.
template <typename Options>
void AddShareOptions(CLI::App& command, Options& options) {
  command
      .add_option("--priority,-p", options.priority,
                  fmt::format("-255 to 255, bigger is more urgent; -256: only while no other queue of the "
                              "device has work ({})",
                              server::ReadBy(&sched::HintsRead::priority)))
      ->check(CLI::Range(PRIORITY_NO_EXECUTE, PRIORITY_MAX));
  command
      .add_option("--utilization,-u", options.utilization,
                  fmt::format("share in percent ({})", server::ReadBy(&sched::HintsRead::utilization)))
      ->check(CLI::Range(UTILIZATION_MIN, UTILIZATION_MAX));
}

}  // namespace xsched::cli
