// The options of the times by which work is due.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>

#include "cli/validators.h"
#include "server/policy_names.h"

namespace xsched::cli {

// Options: has `deadline_us` and `laxity_us`. `least`: 0, where one can be taken away.
template <typename Options>
void AddTimeOptions(CLI::App& command, Options& options, int64_t least = 1) {
  const char* none = least == 0 ? "; 0: none" : "";
  command
      .add_option("--deadline-us", options.deadline_us,
                  fmt::format("deadline, from the arrival of work ({}){}",
                              server::ReadBy(&sched::HintsRead::deadline), none))
      ->check(TimeHint(least));
  command
      .add_option("--laxity-us", options.laxity_us,
                  fmt::format("by how much work may be delayed ({}){}",
                              server::ReadBy(&sched::HintsRead::laxity), none))
      ->check(TimeHint(least));
}

}  // namespace xsched::cli
