// The options of a reservation, which are one hint together.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit_codes.h"
#include "sched/core/reservation.h"
#include "server/policy_names.h"
#include "xsched/types.h"

namespace xsched::cli {

struct ReservationOptions {
  std::optional<int64_t> guarantee_us;
  std::optional<int64_t> period_us;
  std::optional<int64_t> limit_us;
  std::optional<int64_t> burst_us;

  bool Any() const { return guarantee_us || period_us || limit_us || burst_us; }
  // What is not given is 0: with --guarantee-us 0 alone, there is no reservation any more.
  void SetIn(auto& hints) const {
    hints.guarantee_us = guarantee_us.value_or(0);
    hints.period_us = period_us.value_or(0);
    hints.limit_us = limit_us.value_or(0);
    hints.burst_us = burst_us.value_or(0);
  }
};

// Throws CommandError if the options contradict each other.
inline void CheckReservation(const ReservationOptions& options, const char* command) {
  sched::Hints hints;
  options.SetIn(hints);
  const std::string problem = sched::ReservationProblem(hints);
  if (problem.empty()) return;
  throw CommandError(kExitUsage, fmt::format("--guarantee-us, --period-us, --limit-us and --burst-us are no "
                                             "reservation together: {} (see xsched {} --help)",
                                             problem, command));
}

inline void AddReservationOptions(CLI::App& command, ReservationOptions& options) {
  const auto up_to_a_period = CLI::Range(int64_t{0}, int64_t{RESERVATION_PERIOD_MAX});
  command
      .add_option("--guarantee-us", options.guarantee_us,
                  fmt::format("it gets so many µs of each period ({}); 0 alone: no reservation",
                              server::ReadBy(&sched::HintsRead::reservation)))
      ->check(up_to_a_period);
  command.add_option("--period-us", options.period_us, "the period")
      ->check(CLI::Range(int64_t{RESERVATION_PERIOD_MIN}, int64_t{RESERVATION_PERIOD_MAX}));
  command
      .add_option("--limit-us", options.limit_us,
                  "it gets at most so many µs of each period (at least 100); 0: no limit")
      ->check(up_to_a_period);
  command.add_option("--burst-us", options.burst_us, "so much of an unused limit may be used later")
      ->check(up_to_a_period);
}

}  // namespace xsched::cli
