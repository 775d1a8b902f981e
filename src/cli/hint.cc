// xsched hint: changes the hints of running queues.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/server_session.h"
#include "cli/validators.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

struct HintOptions {
  std::optional<uint64_t> queue;
  std::optional<int32_t> pid;
  std::optional<int32_t> priority;
  std::optional<int32_t> utilization;
  std::optional<int64_t> deadline_us;
  std::optional<int64_t> laxity_us;
};

void Hint(const HintOptions& options) {
  ipc::SetHints request{};
  request.queue_id = options.queue.value_or(0);
  request.pid = options.pid.value_or(0);
  if (options.priority) {
    request.mask |= ipc::kHintPriority;
    request.hints.priority = *options.priority;
  }
  if (options.utilization) {
    request.mask |= ipc::kHintUtilization;
    request.hints.utilization = *options.utilization;
  }
  if (options.deadline_us) {
    request.mask |= ipc::kHintDeadline;
    request.hints.deadline_us = *options.deadline_us;
  }
  if (options.laxity_us) {
    request.mask |= ipc::kHintLaxity;
    request.hints.laxity_us = *options.laxity_us;
    request.hints.critical_priority = options.priority.value_or(PRIORITY_DEFAULT);
  }
  if (request.mask == 0) throw CommandError(kExitUsage, "hint: nothing to set (see xsched hint --help)");
  uint32_t count = ServerSession().SetHints(request);
  fmt::print("{} queue{} changed\n", count, count == 1 ? "" : "s");
}

}  // namespace

void AddHint(CLI::App& app) {
  auto options = std::make_shared<HintOptions>();
  CLI::App* hint = app.add_subcommand("hint", "change the hints of queues");
  auto* target = hint->add_option_group("target");
  target->add_option("--queue,-q", options->queue, "the queue, as listed by xsched list");
  target->add_option("--pid", options->pid, "all queues of this process");
  target->require_option(1);
  hint->add_option("--priority,-p", options->priority)->check(CLI::Range(PRIORITY_NO_EXECUTE, PRIORITY_MAX));
  hint->add_option("--utilization,-u", options->utilization)
      ->check(CLI::Range(UTILIZATION_MIN, UTILIZATION_MAX));
  hint->add_option("--deadline-us", options->deadline_us)->check(AboveZero());
  hint->add_option("--laxity-us", options->laxity_us)->check(AboveZero());
  hint->callback([options] { Hint(*options); });
}

}  // namespace xsched::cli
