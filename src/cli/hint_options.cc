#include "cli/hint_options.h"

#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/share_options.h"
#include "cli/time_options.h"
#include "cli/validators.h"
#include "server/policy_names.h"
#include "xsched/types.h"

namespace xsched::cli {

void AddHintOptions(CLI::App& command, LaunchOptions& options) {
  using sched::HintsRead;
  AddShareOptions(command, options);
  AddTimeOptions(command, options);
  command
      .add_option("--weight,-w", options.weight,
                  fmt::format("share, in proportion to the weights of others ({})",
                              server::ReadBy(&HintsRead::weight)))
      ->check(CLI::Range(WEIGHT_MIN, WEIGHT_MAX));
  AddReservationOptions(command, options.reservation);
  AddLatencyOptions(command, options.latency);
  command.add_option("--level,-l", options.level, "preemption level, or the best the platform has below it")
      ->check(CLI::Range(1, 3));
  command.add_option("--threshold", options.threshold, "commands in flight at most")->check(AboveZero());
  command.add_option("--batch-size", options.batch_size, "commands let through at a time")
      ->check(AboveZero());
}

void CheckHintOptions(const LaunchOptions& options) {
  if (options.threshold && options.batch_size > options.threshold)
    throw CommandError(kExitUsage, "--batch-size must not be more than --threshold (see xsched run --help)");
  CheckReservation(options.reservation, "run");
}

}  // namespace xsched::cli
