#include "sched/core/views.h"

#include <algorithm>
#include <new>

#include "sched/core/accounting.h"
#include "sched/core/reservation.h"

namespace xsched::sched {
namespace {

// True if the former policies let it run.
bool IsShown(const QueueRecord& queue) { return queue.run && queue.IsEligible(); }

QueueView ViewOf(QueueRecord& queue, size_t layer, bool leaves_gaps) {
  return {.id = queue.id,
          .process = queue.process->id,
          .hints = queue.hints,
          .priority = queue.priority,
          .ready_since = queue.requests.since(),
          .finished_at = queue.finished_at,
          .running = queue.was_chosen,
          .running_since = queue.chosen_since,
          .service = ChosenServiceOf(queue),
          .leaves_gaps = leaves_gaps,
          .newly_ready = ((queue.newly_ready >> layer) & 1) != 0,
          .state = &queue.policy_states[layer],
          .process_state = &queue.process->policy_states[layer],
          .facts = queue.facts,
          .process_weight = queue.process->hints.weight,
          .process_service = queue.process->received.for_shares,
          .tenant_state = &queue.process->tenant->policy_states[layer],
          .tenant_weight = queue.process->tenant->share.weight,
          .tenant_service = queue.process->tenant->received.for_shares,
          .run = true};
}

// Made in place: to copy a view for each queue took a third of a decision. REQUIRES: there is room.
QueueView& AddView(DeviceRecord& device, QueueRecord& queue, size_t layer, bool leaves_gaps) {
  return *new (&device.views.Extend()) QueueView(ViewOf(queue, layer, leaves_gaps));
}

// When a request is to be done, or to begin.
struct RequestTimes {
  Deadline deadline_us;
  Laxity laxity_us;
  LatencyTarget latency_target_us;
};

// `of_all`: the hints of its process or tenant. What a queue without a target does is a part of what has one.
RequestTimes TimesOf(const QueueRecord& queue, const Hints& of_all) {
  const Hints& hints = queue.hints;
  const bool has_target = hints.latency_target_us > 0;
  return {hints.deadline_us, hints.laxity_us, (has_target ? hints : of_all).latency_target_us};
}

// When a policy that reads these hints wants the request done, or begun. `times`: those of a queue, or hints.
TimePoint DueAt(TimePoint since, const auto& times, const HintsRead& reads) {
  int64_t time_us = -1;
  if (reads.deadline) time_us = times.deadline_us;
  if (reads.laxity) time_us = times.laxity_us;
  if (reads.latency_target && times.latency_target_us > 0) time_us = times.latency_target_us;
  return time_us >= 0 ? since + std::chrono::microseconds(time_us) : kNever;
}

// The queue's request is the one that counts of its process or tenant, for the time that the queue asked for.
void TakeRequest(QueueView& group, const QueueRecord& queue, const RequestTimes& times) {
  group.ready_since = queue.requests.since();
  group.hints.deadline_us = times.deadline_us;
  group.hints.laxity_us = times.laxity_us;
  group.hints.latency_target_us = times.latency_target_us;
}

// Adds what a further ready queue of the process or tenant does.
void Join(QueueView& group, const Hints& of_all, const QueueRecord& queue, size_t layer,
          const HintsRead& reads, bool leaves_gaps) {
  group.leaves_gaps &= leaves_gaps;
  group.priority = std::max(group.priority, queue.priority);
  const TimePoint since = queue.requests.since();
  const RequestTimes times = TimesOf(queue, of_all);
  const TimePoint due = DueAt(since, times, reads);
  const TimePoint first_due = DueAt(group.ready_since, group.hints, reads);
  if (due < first_due || (due == kNever && first_due == kNever && since < group.ready_since))
    TakeRequest(group, queue, times);
  group.newly_ready &= ((queue.newly_ready >> layer) & 1) != 0;
  group.facts.cpu_priority = std::max(group.facts.cpu_priority, queue.facts.cpu_priority);
  group.facts.window_active |= queue.facts.window_active;
}

void AddUpProcesses(DeviceRecord& device) {
  for (const QueueRecord* queue : device.active) {
    ProcessRecord& process = *queue->process;
    process.view = process.tenant->view = nullptr;
    process.received = process.received_by_others;
    process.tenant->received = process.tenant->received_by_others;
  }
  for (const QueueRecord* queue : device.active) {
    const Received received = ReceivedBy(*queue);
    queue->process->received += received;
    queue->process->tenant->received += received;
  }
}

// `group_of(queue)`: its process or its tenant.
template <typename GroupOf, typename Leaves>
void MakeViewsOfGroups(DeviceRecord& device, size_t layer, Granularity by, const HintsRead& reads,
                       GroupOf&& group_of, Leaves&& leaves_gaps) {
  for (QueueRecord* queue : device.active) {
    if (!IsShown(*queue)) continue;
    auto& group = group_of(*queue);
    if (group.view != nullptr) {
      Join(*group.view, group.hints, *queue, layer, reads, leaves_gaps(*queue));
      continue;
    }
    group.view = &AddView(device, *queue, layer, leaves_gaps(*queue));
    group.view->hints = group.hints;
    TakeRequest(*group.view, *queue, TimesOf(*queue, group.hints));
    group.view->priority = PriorityFor(*queue, by);
    group.view->service = group.received.for_shares;
    group.view->service_in_all = group.received.in_all;
    group.view->finished_at = group.finished_at;
    group.view->running = group.chosen.any();
    group.view->running_since = group.chosen.since();
    group.view->state = &group.view_states[layer];
  }
}

ProcessRecord& ProcessRecordOf(const QueueRecord& queue) { return *queue.process; }
TenantRecord& TenantRecordOf(const QueueRecord& queue) { return *queue.process->tenant; }

void RefreshHintsOfTenants(DeviceRecord& device, bool wanted) {
  for (TenantRecord* tenant : device.tenants) tenant->has_hints = false;
  if (!wanted) return;
  for (const ProcessRecord* process : device.slices.processes()) {
    if (process->tenant == nullptr || !process->has_hints) continue;
    TenantRecord& tenant = *process->tenant;
    tenant.hints = tenant.has_hints ? CombineHints(tenant.hints, process->hints) : process->hints;
    tenant.has_hints = true;
  }
  for (TenantRecord* tenant : device.tenants) {
    tenant->hints.weight = tenant->hints.utilization = tenant->share.weight;
    TakeReservation(tenant->hints, tenant->share);
  }
}

// `take(queue, its view)`, for each queue that was shown to the policy.
template <typename Take>
void ForEachView(DeviceRecord& device, size_t layer, Granularity by, Take&& take) {
  const QueueView* next = device.views.begin();
  for (QueueRecord* queue : device.active) {
    if (!IsShown(*queue)) continue;
    const QueueView& view = by == Granularity::kProcess  ? *queue->process->view
                            : by == Granularity::kTenant ? *queue->process->tenant->view
                                                         : *next++;
    take(*queue, view);
    queue->newly_ready &= static_cast<uint8_t>(~(1u << layer));
  }
}

// The priorities of a laxity mean nothing without it.
void CombineLaxities(Hints& both, const Hints& one, const Hints& other) {
  const bool of_both = one.laxity_us != NO_LAXITY && other.laxity_us != NO_LAXITY;
  const Hints& has_it = one.laxity_us != NO_LAXITY ? one : other;
  both.laxity_us = of_both ? std::min(one.laxity_us, other.laxity_us) : has_it.laxity_us;
  both.lax_priority = of_both ? std::max(one.lax_priority, other.lax_priority) : has_it.lax_priority;
  both.critical_priority =
      of_both ? std::max(one.critical_priority, other.critical_priority) : has_it.critical_priority;
}

}  // namespace

Hints CombineHints(const Hints& one, const Hints& other) {
  auto earlier = [](int64_t a, int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); };
  auto earlier_if_any = [](int64_t a, int64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); };
  Hints both = one;
  both.priority = std::max(one.priority, other.priority);
  both.utilization = std::max(one.utilization, other.utilization);
  both.deadline_us = earlier(one.deadline_us, other.deadline_us);
  CombineLaxities(both, one, other);
  both.weight = std::max(one.weight, other.weight);
  both.latency_target_us = earlier_if_any(one.latency_target_us, other.latency_target_us);
  both.floor = std::max(one.floor, other.floor);
  CombineReservations(both, one, other);
  return both;
}

void RefreshHintsOfGroups(DeviceRecord& device, bool of_tenants) {
  for (ProcessRecord* process : device.slices.processes()) process->has_hints = false;
  for (const QueueRecord* queue : device.queues) {
    ProcessRecord& process = *queue->process;
    process.hints = process.has_hints ? CombineHints(process.hints, queue->hints) : queue->hints;
    process.has_hints = true;
  }
  RefreshHintsOfTenants(device, of_tenants);
}

void MakeViews(DeviceRecord& device, TimePoint now, size_t layer, Granularity by, const PolicyInfo& policy,
               bool gaps) {
  const auto leaves_gaps = [=](const QueueRecord& queue) { return gaps && LeavesGaps(queue, now); };
  device.views.Clear();
  if (by != Granularity::kQueue || policy.sees_processes) AddUpProcesses(device);
  if (by == Granularity::kProcess)
    return MakeViewsOfGroups(device, layer, by, policy.hints, ProcessRecordOf, leaves_gaps);
  if (by == Granularity::kTenant)
    return MakeViewsOfGroups(device, layer, by, policy.hints, TenantRecordOf, leaves_gaps);
  for (QueueRecord* queue : device.active) {
    if (!IsShown(*queue)) continue;
    AddView(device, *queue, layer, leaves_gaps(*queue)).service_in_all = ServiceOf(*queue);
  }
}

void TakeLimits(DeviceRecord& device, size_t layer, Granularity by) {
  ForEachView(device, layer, by, [](QueueRecord& queue, const QueueView& view) {
    queue.limited_until = std::max(queue.limited_until, view.limited_until);
    queue.left_of_limit = std::min(queue.left_of_limit, view.left_of_limit);
  });
}

void TakeDecision(DeviceRecord& device, size_t layer, Granularity by) {
  ForEachView(device, layer, by,
              [](QueueRecord& queue, const QueueView& view) { queue.run = queue.chosen = view.run; });
}

}  // namespace xsched::sched
