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
          .process_service = queue.process->service,
          .run = true};
}

// Made in place: to copy a view for each queue took a third of a decision. REQUIRES: there is room.
QueueView& AddView(DeviceRecord& device, QueueRecord& queue, size_t layer, bool leaves_gaps) {
  [[maybe_unused]] bool added = device.views.Append(1);
  return *new (device.views.end() - 1) QueueView(ViewOf(queue, layer, leaves_gaps));
}

// Adds what a further ready queue of the process does.
void Join(QueueView& process, const QueueRecord& queue, size_t layer, bool leaves_gaps) {
  process.leaves_gaps &= leaves_gaps;
  process.priority = std::max(process.priority, queue.priority);
  process.ready_since = std::min(process.ready_since, queue.requests.since());
  process.newly_ready &= ((queue.newly_ready >> layer) & 1) != 0;
}

void AddUpProcesses(DeviceRecord& device) {
  for (const QueueRecord* queue : device.active) {
    queue->process->view = nullptr;
    queue->process->service = queue->process->service_of_others;
  }
  for (const QueueRecord* queue : device.active) queue->process->service += ChosenServiceOf(*queue);
}

template <typename Leaves>
void MakeViewsOfProcesses(DeviceRecord& device, size_t layer, Leaves&& leaves_gaps) {
  for (QueueRecord* queue : device.active) {
    if (!IsShown(*queue)) continue;
    ProcessRecord& process = *queue->process;
    if (process.view != nullptr) {
      Join(*process.view, *queue, layer, leaves_gaps(*queue));
      continue;
    }
    process.view = &AddView(device, *queue, layer, leaves_gaps(*queue));
    process.view->hints = process.hints;
    process.view->priority = PriorityFor(*queue, Granularity::kProcess);
    process.view->service = process.service;
    process.view->finished_at = process.finished_at;
    process.view->running = process.chosen != 0;
    process.view->running_since = process.chosen_since;
    process.view->state = &process.view_states[layer];
  }
}

}  // namespace

Hints CombineHints(const Hints& one, const Hints& other) {
  auto earlier = [](int64_t a, int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); };
  auto earlier_if_any = [](int64_t a, int64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); };
  Hints both = one;
  both.priority = std::max(one.priority, other.priority);
  both.utilization = std::max(one.utilization, other.utilization);
  both.deadline_us = earlier(one.deadline_us, other.deadline_us);
  both.laxity_us = earlier(one.laxity_us, other.laxity_us);
  both.lax_priority = std::max(one.lax_priority, other.lax_priority);
  both.critical_priority = std::max(one.critical_priority, other.critical_priority);
  both.weight = std::max(one.weight, other.weight);
  both.latency_target_us = earlier_if_any(one.latency_target_us, other.latency_target_us);
  both.floor = std::max(one.floor, other.floor);
  CombineReservations(both, one, other);
  return both;
}

void RefreshHintsOfProcesses(DeviceRecord& device) {
  for (ProcessRecord* process : device.slices.processes()) process->has_hints = false;
  for (const QueueRecord* queue : device.queues) {
    ProcessRecord& process = *queue->process;
    process.hints = process.has_hints ? CombineHints(process.hints, queue->hints) : queue->hints;
    process.has_hints = true;
  }
}

void MakeViews(DeviceRecord& device, TimePoint now, size_t layer, Granularity by, bool with_processes,
               bool gaps) {
  const auto leaves_gaps = [=](const QueueRecord& queue) { return gaps && LeavesGaps(queue, now); };
  device.views.Clear();
  if (by == Granularity::kProcess || with_processes) AddUpProcesses(device);
  if (by == Granularity::kProcess) return MakeViewsOfProcesses(device, layer, leaves_gaps);
  for (QueueRecord* queue : device.active) {
    if (!IsShown(*queue)) continue;
    AddView(device, *queue, layer, leaves_gaps(*queue));
  }
}

void TakeDecision(DeviceRecord& device, size_t layer, Granularity by) {
  const QueueView* next = device.views.begin();
  for (QueueRecord* queue : device.active) {
    if (!IsShown(*queue)) continue;
    const QueueView& view = by == Granularity::kProcess ? *queue->process->view : *next++;
    queue->run = queue->chosen = view.run;
    if (!view.run) queue->limited_until = std::max(queue->limited_until, view.limited_until);
    queue->newly_ready &= static_cast<uint8_t>(~(1u << layer));
  }
}

}  // namespace xsched::sched
