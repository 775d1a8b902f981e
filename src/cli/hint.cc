// xsched hint: changes the hints of running queues.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/latency_options.h"
#include "cli/queue_named.h"
#include "cli/reservation_options.h"
#include "cli/server_session.h"
#include "cli/share_options.h"
#include "cli/time_options.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

// The hints that came with kMinorOfChains.
constexpr uint32_t kNewHints =
    ipc::kHintWeight | ipc::kHintReservation | ipc::kHintLatencyTarget | ipc::kHintFloor;

struct HintOptions {
  std::string queue;
  std::optional<int32_t> pid;
  std::optional<int32_t> priority;
  std::optional<int32_t> utilization;
  std::optional<int64_t> deadline_us;
  std::optional<int64_t> laxity_us;
  std::optional<int32_t> weight;
  ReservationOptions reservation;
  LatencyOptions latency;
  int64_t timeslice_us = 0;
  std::optional<uint32_t> display;  // on which a window of the process is the active one
};

ipc::SetHints RequestFrom(const HintOptions& options) {
  ipc::SetHints request{};
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
    request.hints.deadline_us = *options.deadline_us != 0 ? *options.deadline_us : NO_DEADLINE;
  }
  if (options.laxity_us) {
    request.mask |= ipc::kHintLaxityTime;
    request.hints.laxity_us = *options.laxity_us != 0 ? *options.laxity_us : NO_LAXITY;
  }
  if (options.weight) {
    request.mask |= ipc::kHintWeight;
    request.more_hints.weight = *options.weight;
  }
  if (options.reservation.Any()) {
    request.mask |= ipc::kHintReservation;
    options.reservation.SetIn(request.more_hints);
  }
  if (options.latency.latency_target_us) {
    request.mask |= ipc::kHintLatencyTarget;
    request.more_hints.latency_target_us = *options.latency.latency_target_us;
  }
  if (options.latency.floor) {
    request.mask |= ipc::kHintFloor;
    request.more_hints.floor = static_cast<Floor>(*options.latency.floor);
  }
  return request;
}

void SetTimeslice(ServerSession& server, int64_t timeslice_us) {
  ipc::SetPolicy request{};
  request.timeslice_us = timeslice_us;
  server.SetPolicy(request);
  fmt::print("timeslice {} µs\n", timeslice_us);
}

void SetActiveWindow(ServerSession& server, int32_t pid, uint32_t display) {
  server.Require(kMinorOfChains, "for active windows");
  ipc::SetActiveWindow request{};
  request.pid = pid;
  request.display = display;
  request.user = getuid();
  const uint32_t count = server.SetActiveWindow(request);
  fmt::print("the active window of display {}: process {}, queues: {}\n", display, pid, count);
}

void Hint(const HintOptions& options) {
  ipc::SetHints request = RequestFrom(options);
  const bool of_queues = !options.queue.empty() || options.pid;
  if (request.mask != 0 && !of_queues)
    throw CommandError(kExitUsage,
                       "hint: of which queue? --queue or --pid is missing (see xsched hint --help)");
  if (request.mask != 0 && options.pid && *options.pid <= 0)
    throw CommandError(kExitUsage, fmt::format("hint: {} is no process", *options.pid));
  if (options.display && !options.pid)
    throw CommandError(kExitUsage, "hint: --window-active needs --pid (see xsched hint --help)");
  if (request.mask == 0 && options.timeslice_us == 0 && !options.display)
    throw CommandError(kExitUsage, "hint: nothing to set (see xsched hint --help)");
  CheckReservation(options.reservation, "hint");
  ServerSession server;
  if (options.timeslice_us != 0) SetTimeslice(server, options.timeslice_us);
  if (options.display) SetActiveWindow(server, *options.pid, *options.display);
  if (request.mask == 0) return;
  if (!options.queue.empty()) request.queue_id = QueueNamed(server, options.queue);
  if ((request.mask & kNewHints) != 0) server.Require(kMinorOfChains, "for this hint");
  if (options.laxity_us) server.Require(kMinorOfLaxityTime, "to set a laxity without its priorities");
  const ipc::Reply reply = server.SetHints(request);
  fmt::print("{} queue{} changed\n", reply.count, reply.count == 1 ? "" : "s");
  if (reply.text[0] != '\0') fmt::print(stderr, "xsched: {}\n", reply.text);
}

}  // namespace

void AddHint(CLI::App& app) {
  auto options = std::make_shared<HintOptions>();
  CLI::App* hint = app.add_subcommand("hint", "change the hints of queues");
  auto* queue =
      hint->add_option("--queue,-q,--xqueue,-x", options->queue, "the queue, as listed by xsched list")
          ->check(QueueNumber());
  hint->add_option("--pid", options->pid, "all queues of this process")->excludes(queue);
  AddShareOptions(*hint, *options);
  AddTimeOptions(*hint, *options, /*least=*/0);
  hint->add_option("--weight,-w", options->weight,
                   fmt::format("share, in proportion to the weights of others ({})",
                               server::ReadBy(&sched::HintsRead::weight)))
      ->check(CLI::Range(WEIGHT_MIN, WEIGHT_MAX));
  AddReservationOptions(*hint, options->reservation);
  AddLatencyOptions(*hint, options->latency);
  auto* window =
      hint->add_option("--window-active", options->display,
                       fmt::format("a window of the process --pid is the active one of your display of this "
                                   "number (default 0); --pid 0: of no process ({})",
                                   server::ReadBy(&sched::HintsRead::window_active)))
          ->expected(0, 1);
  hint->add_option("--timeslice,-t", options->timeslice_us, "the server's timeslice in µs, for all queues")
      ->check(CLI::Range(int64_t{TIMESLICE_MIN}, int64_t{TIMESLICE_MAX}));
  hint->callback([options, window] {
    if (window->count() != 0 && !options->display) options->display = 0;
    Hint(*options);
  });
}

}  // namespace xsched::cli
