#include "server/queue_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sched/core/reservation.h"
#include "server/limits.h"
#include "server/tenants/audit_text.h"
#include "server/tenants/priority_claims.h"

namespace xsched::server {
namespace {

// The same answer for a queue of another user, so that it is not revealed which queues exist.
constexpr const char* kNoSuchQueue = "no such queue of yours";

bool SetsPriority(const ipc::SetHints& request) { return (request.mask & ipc::kHintPriority) != 0; }
bool SetsLaxity(const ipc::SetHints& request) { return (request.mask & ipc::kHintLaxity) != 0; }
bool SetsLaxityTime(const ipc::SetHints& request) { return (request.mask & ipc::kHintLaxityTime) != 0; }

// Whether the queue is to be critical with its priority from now on.
bool IsCriticalWithPriority(const ipc::SetHints& request, const sched::Hints& before) {
  return SetsLaxityTime(request) && (SetsPriority(request) || before.laxity_us == NO_LAXITY);
}

// `before`, with the request's hints replaced.
sched::Hints With(const ipc::SetHints& request, const sched::Hints& before) {
  sched::Hints hints = before;
  if (SetsPriority(request)) hints.priority = request.hints.priority;
  if ((request.mask & ipc::kHintUtilization) != 0) hints.utilization = request.hints.utilization;
  if ((request.mask & ipc::kHintDeadline) != 0) hints.deadline_us = request.hints.deadline_us;
  if (SetsLaxityTime(request)) hints.laxity_us = request.hints.laxity_us;
  if (IsCriticalWithPriority(request, before)) hints.critical_priority = hints.priority;
  if (SetsLaxity(request)) {
    hints.laxity_us = request.hints.laxity_us;
    hints.lax_priority = request.hints.lax_priority;
    hints.critical_priority = request.hints.critical_priority;
  }
  if ((request.mask & ipc::kHintWeight) != 0) hints.weight = request.more_hints.weight;
  if ((request.mask & ipc::kHintReservation) != 0) sched::TakeReservation(hints, request.more_hints);
  if ((request.mask & ipc::kHintLatencyTarget) != 0)
    hints.latency_target_us = request.more_hints.latency_target_us;
  if ((request.mask & ipc::kHintFloor) != 0) hints.floor = request.more_hints.floor;
  return hints;
}

// Which of the priorities are granted afterwards. An administrator `grants` those that the request names.
Granted GrantedBy(const ipc::SetHints& request, bool grants, const Queue& queue) {
  Granted granted = queue.granted;
  if (SetsPriority(request)) granted.priority = grants;
  if (SetsLaxity(request)) return {granted.priority, grants, grants};
  if (!SetsLaxityTime(request)) return granted;
  // With another time, priorities that an administrator has set would count at other times.
  if (!grants && request.hints.laxity_us != queue.hints.laxity_us)
    granted.lax_priority = granted.critical_priority = false;
  if (IsCriticalWithPriority(request, queue.hints)) granted.critical_priority = grants && granted.priority;
  return granted;
}

AuditRecord RecordOf(const ipc::SetHints& request) {
  return {.what = "hints", .target = TargetOf(request), .to = TextOf(request.mask, With(request, {}))};
}

AuditRecord RecordOf(const ipc::SetConfig& request) {
  return {.what = "config", .target = TargetOf(request), .to = TextOf(request)};
}

}  // namespace

std::string QueueChange::WhatIsWrong(const ipc::SetHints& request) {
  constexpr uint32_t kKnown = ipc::kHintPriority | ipc::kHintUtilization | ipc::kHintDeadline |
                              ipc::kHintLaxity | ipc::kHintWeight | ipc::kHintReservation |
                              ipc::kHintLatencyTarget | ipc::kHintFloor | ipc::kHintLaxityTime;
  if (request.mask == 0 || (request.mask & ~kKnown) != 0) return "no hint, or an unknown one";
  return SetsLaxity(request) && SetsLaxityTime(request) ? "a laxity with and without its priorities" : "";
}

std::string QueueChange::WhatIsWrong(const ipc::SetConfig& request) {
  const bool nothing = request.level == 0 && request.threshold == 0 && request.batch_size == 0;
  const bool out_of_range =
      request.level >= kPreemptLevelMax || request.threshold < 0 || request.batch_size < 0;
  return nothing || out_of_range ? "no level, threshold or batch size, or one out of its range" : "";
}

QueueChange::QueueChange(const Parts& parts, const Connection& tool, const Request& request)
    : parts_(parts),
      request_(request),
      user_(tool.peer.uid),
      is_admin_(parts.access.IsAdmin(tool.peer)),
      record_(std::visit([](const auto& of_kind) { return RecordOf(of_kind); }, request)) {
  const auto may_touch = [&](const Agent& agent) {
    return parts_.access.MayTouch(tool.peer, agent.connection.peer.uid);
  };
  const auto [queue_id, pid] = std::visit(
      [](const auto& of_kind) { return std::pair(sched::QueueId{of_kind.queue_id}, of_kind.pid); }, request);
  if (queue_id != sched::QueueId{}) {
    const Queue* queue = parts_.queues.Find(queue_id);
    if (queue != nullptr && may_touch(*queue->agent)) queues_.push_back(queue_id);
    return;
  }
  parts_.agents.ForEachOf(pid, [&](Agent& agent) {
    if (!may_touch(agent)) return;
    for (const auto& [index, queue] : agent.queues) queues_.push_back(queue.id);
  });
}

bool QueueChange::Continue() {
  const size_t end = std::min(queues_.size(), next_ + kMaxChangedPerRound);
  Agent* agent = nullptr;
  while (next_ < end) {
    // Whether a reservation can be kept takes a look at all queues.
    if (agent != nullptr && SetsReservation() && parts_.work.IsSpent(user_)) break;
    parts_.work.Charge(user_, 1);
    Queue* queue = parts_.queues.Find(queues_[next_++]);
    if (queue == nullptr) continue;  // it went in the meantime
    if (agent != nullptr && agent != queue->agent) SendTo(*agent);
    agent = queue->agent;
    if (!std::visit([&](const auto& request) { return Change(request, *queue); }, request_))
      next_ = queues_.size();
  }
  if (agent != nullptr) SendTo(*agent);
  return next_ >= queues_.size();
}

bool QueueChange::SetsReservation() const {
  const auto* hints = std::get_if<ipc::SetHints>(&request_);
  return hints != nullptr && (hints->mask & ipc::kHintReservation) != 0;
}

void QueueChange::SendTo(Agent& agent) {
  parts_.work.Charge(user_, parts_.agents.SendUnsent(agent) * WorkBudget::kSent);
}

bool QueueChange::Change(const ipc::SetHints& request, Queue& queue) {
  const sched::Hints hints = With(request, queue.hints);
  if (!IsValid(hints)) return Fail(kXSchedErrorInvalidValue, "a hint is out of its range");
  if ((request.mask & ipc::kHintReservation) != 0) {
    parts_.work.Charge(user_, parts_.queues.LookedAtFor(hints) / WorkBudget::kLookedAtAsOne);
    std::string refusal = parts_.queues.RefusalOf(queue, hints);
    if (!refusal.empty()) return Fail(kXSchedErrorInvalidValue, std::move(refusal));
  }
  if (record_.from.empty()) record_.from = TextOf(request.mask, queue.hints);
  const bool grants = is_admin_ && request.for_user == 0;
  parts_.agents.SetHints(queue, hints, GrantedBy(request, grants, queue));
  const bool claims = SetsPriority(request) || SetsLaxity(request) || SetsLaxityTime(request);
  if (claims && outcome_.text.empty()) outcome_.text = CorrectionOf(queue);
  ++outcome_.count;
  return true;
}

bool QueueChange::Change(const ipc::SetConfig& request, Queue& queue) {
  const int64_t threshold = request.threshold != 0 ? request.threshold : queue.threshold;
  const int64_t batch_size = request.batch_size != 0 ? request.batch_size : queue.batch_size;
  if (threshold != 0 && batch_size > threshold)  // 0: the agent has reported none
    return Fail(kXSchedErrorInvalidValue, "the batch size must not be more than the threshold");
  ++(parts_.agents.SetConfig(queue, request) ? outcome_.count : too_old_);
  return true;
}

bool QueueChange::Fail(XResult result, std::string why) {
  outcome_.result = result;
  outcome_.text = std::move(why);
  return false;
}

QueueChange::Outcome QueueChange::outcome() const {
  if (outcome_.result != kXSchedSuccess) return outcome_;
  if (too_old_ != 0) {
    return {kXSchedErrorNotSupported, outcome_.count,
            fmt::format("{} of {} queues not changed: the program's XSched is older than the server's and "
                        "cannot do this. Restart the program with the new one",
                        too_old_, too_old_ + outcome_.count)};
  }
  if (outcome_.count == 0) return {kXSchedErrorNotFound, 0, kNoSuchQueue};
  return outcome_;
}

}  // namespace xsched::server
