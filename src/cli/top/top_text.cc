#include "cli/top/top_text.h"

#include <fmt/format.h>

#include "cli/policy_text.h"
#include "cli/queue_text.h"
#include "sched/core/policy.h"

namespace xsched::cli {

std::string TopSummary(const ipc::Status& status) {
  return fmt::format(
      "xserver {} (pid {}), up {} s | policy {}, timeslice {} us | clients {}, queues {}, "
      "incidents {}",
      status.version, status.pid, status.uptime_ns / 1'000'000'000, PolicyText(status), status.timeslice_us,
      status.clients, status.queues, status.incidents);
}

std::string TopHeading() {
  return fmt::format("{:>6} {:>8} {:<18} {:<9} {:>5} {:>5} {:>3} {:>11} {:>7} {:>7}  {}", "QUEUE", "PID",
                     "PROCESS", "STATE", "PRIO", "UTIL", "LVL", "COMMANDS/s", "DEVICE", "WAITING", "ON");
}

std::string TopRow(const QueueRates& entry) {
  const ipc::QueueInfo& queue = entry.queue;
  std::string why = WhyText(queue);
  return fmt::format("{:>6} {:>8} {:<18.18} {:<9} {:>5} {:>4}% {:>3} {:>11.1f} {:>6.1f}% {:>6.1f}%  {}{}{}",
                     queue.queue_id, queue.pid, queue.name, StateText(queue), queue.hints.priority,
                     queue.hints.utilization, queue.level, entry.commands_per_s, entry.device_share * 100,
                     entry.waiting_share * 100, queue.device_name, why.empty() ? "" : ": ", why);
}

}  // namespace xsched::cli
