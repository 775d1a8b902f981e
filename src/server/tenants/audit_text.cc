#include "server/tenants/audit_text.h"

#include <fmt/format.h>

#include <utility>

#include "server/clean_text.h"
#include "server/connection.h"
#include "server/policy_names.h"

namespace xsched::server {
namespace {

std::string Target(uint64_t queue, int32_t pid) {
  return queue != 0 ? fmt::format("queue {}", queue) : fmt::format("pid {}", pid);
}

}  // namespace

std::string TargetOf(const ipc::SetHints& request) { return Target(request.queue_id, request.pid); }
std::string TargetOf(const ipc::SetConfig& request) { return Target(request.queue_id, request.pid); }

std::string TextOf(uint32_t mask, const sched::Hints& hints) {
  std::string all;
  auto add = [&](uint32_t bit, const std::string& text) {
    if ((mask & bit) != 0) all += (all.empty() ? "" : ", ") + text;
  };
  add(ipc::kHintPriority, fmt::format("priority {}", hints.priority));
  add(ipc::kHintUtilization, fmt::format("utilization {}", hints.utilization));
  add(ipc::kHintDeadline, fmt::format("deadline {} µs", hints.deadline_us));
  add(ipc::kHintLaxity, fmt::format("laxity {} µs, priorities {} and {}", hints.laxity_us, hints.lax_priority,
                                    hints.critical_priority));
  add(ipc::kHintWeight, fmt::format("weight {}", hints.weight));
  add(ipc::kHintReservation,
      fmt::format("guarantee {} of {} µs, limit {} µs, burst {} µs", hints.guarantee_us, hints.period_us,
                  hints.limit_us, hints.burst_us));
  add(ipc::kHintLatencyTarget, fmt::format("latency target {} µs", hints.latency_target_us));
  add(ipc::kHintFloor, fmt::format("floor {} %", hints.floor));
  return all;
}

std::string TextOf(const ipc::SetConfig& request) {
  return fmt::format("level {}, threshold {}, batch size {} (0: as before)", request.level, request.threshold,
                     request.batch_size);
}

std::string TextOf(const ipc::SetPolicy& request) {
  const std::string setting = CleanText(request.setting, sizeof request.setting);
  const sched::Policy* policy = sched::FindPolicyByNumber(request.policy);
  const std::string name = !setting.empty() ? setting : policy != nullptr ? policy->info().name : "as before";
  return fmt::format("{}, timeslice {} µs, k {} (0: as before)", name, request.timeslice_us,
                     request.at_a_time);
}

std::string TextOf(const sched::Scheduler& scheduler) {
  return fmt::format("{}, timeslice {} µs, k {}", TextOf(scheduler.setting()),
                     scheduler.timeslice() / std::chrono::microseconds(1), scheduler.at_a_time());
}

}  // namespace xsched::server
