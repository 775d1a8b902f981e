// What queues report of their progress.
#include <algorithm>
#include <utility>

#include "sched/core/accounting.h"
#include "sched/core/active_queues.h"
#include "sched/core/overruns.h"
#include "sched/core/scheduler_impl.h"

namespace xsched::sched {

void Scheduler::Progress(QueueId id, uint64_t submitted, uint64_t retired, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr) return;
  retired = std::min(retired, submitted);
  const TimePoint moved_at = std::min(now, queue->stopped_at);
  if (IsService(queue->charge)) queue->stopped_at = kNever;
  if (submitted == queue->submitted && retired == queue->retired) return;
  Activate(*queue);
  bool retired_some = retired != queue->retired;
  queue->submitted = submitted;
  if (retired_some) impl_->Retire(*queue, retired, moved_at, now);

  QueueState before = queue->state;
  if (before != QueueState::kReady) impl_->Resume(*queue, now);
  if (queue->Unfinished()) {
    if (before == QueueState::kReady) {
      const TimePoint since = queue->requests.since();
      if (!queue->requests.Continue(submitted, retired, now)) return;
      Impl::EndRequest(*queue, since, now);
      queue->device->dirty |= impl_->PolicyReadsRequests();
      return;
    }
    queue->state = QueueState::kReady;
    queue->watch.Reset(now);
    // A lingering queue goes on as if it had never paused.
    if (before == QueueState::kLingering) {
      queue->requests.Resume(submitted, queue->hints, now);
    } else {
      queue->ready_since = now;
      queue->requests.Begin(submitted, now);
      queue->newly_ready = kNewToAllPolicies;
      queue->device->dirty = true;
    }
  } else if (before == QueueState::kReady || retired_some) {
    queue->watch.Reset(now);
    if (before == QueueState::kIdle) {
      // It became ready and finished between two readings of its counters.
      queue->ready_since = now;
      queue->requests.Begin(submitted, now);
      queue->newly_ready = kNewToAllPolicies;
    }
    queue->state = QueueState::kLingering;
    EndOverrun(*queue, now);
    Impl::EndRequest(*queue, queue->requests.since(), now);
    queue->pauses.Begin(now);
    queue->device->dirty = true;
  }
}

// A pause is over.
void Scheduler::Impl::Resume(QueueRecord& queue, TimePoint now) {
  const bool soon = queue.pauses.End(now, GraceOf(queue, config));
  if (queue.launches.Resumed(soon, now)) LaunchesChanged(queue);
}

void Scheduler::Impl::EndRequest(QueueRecord& queue, TimePoint since, TimePoint now) {
  if (queue.absent || queue.absent_since > since) return;
  queue.finished_at = queue.process->finished_at = queue.process->tenant->finished_at = now;
}

void Scheduler::Moved(QueueId id, uint32_t moves, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->moves, moves) == moves) return;
  Impl::Moved(*queue, std::min(now, queue->stopped_at), now);
}

void Scheduler::Drained(QueueId id, uint32_t drains, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->drains, drains) == drains) return;
  if (!queue->overruns) return;
  EndOverrun(*queue, now);
  // If nobody waits for the end, it changes only what the queues receive from now on.
  DeviceRecord& device = *queue->device;
  if (device.awaited != nullptr) {
    device.dirty = true;
  } else {
    device.ask_at = now;
    impl_->decide_at = std::min(impl_->decide_at, now);
  }
}

void Scheduler::FoundIdle(QueueId id, uint32_t found_idle, TimePoint now) {
  if (impl_ == nullptr) return;
  QueueRecord* queue = impl_->Find(id);
  if (queue == nullptr || std::exchange(queue->found_idle, found_idle) == found_idle) return;
  queue->launches.FoundIdle();
  // Its pause may be over by the time of the report.
  if (queue->state == QueueState::kReady && queue->launches.Resumed(true, now)) Impl::LaunchesChanged(*queue);
}

void Scheduler::Impl::LaunchesChanged(QueueRecord& queue) {
  Activate(queue);
  queue.device->dirty = true;
}

void Scheduler::Impl::Retire(QueueRecord& queue, uint64_t retired, TimePoint at, TimePoint now) {
  queue.retired = retired;
  if (queue.awaited) queue.device->dirty = true;
  Moved(queue, at, now);
}

// The queue made progress, at `at` or later.
void Scheduler::Impl::Moved(QueueRecord& queue, TimePoint at, TimePoint now) {
  DeviceRecord& device = *queue.device;
  device.silence.Break(at, now);
  if (queue.watch.stalled()) device.dirty = true;
  queue.watch.Reset(now);
}

}  // namespace xsched::sched
