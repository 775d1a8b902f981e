#include "preempt/scheduling/local_scheduler.h"

#include <new>

#include "ipc/control_access.h"
#include "ipc/segment.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {
namespace {

// A scheduler's ids are never used again, slots are: the handle holds both a slot and its generation.
sched::QueueId IdOf(const XQueue& queue) { return sched::QueueId{queue.id()}; }
uint32_t IndexOf(sched::QueueId id) { return XQueueIndex(static_cast<XQueueHandle>(id)); }

}  // namespace

bool LocalScheduler::Start(ipc::Segment& segment, const sched::Policy& policy) {
  segment_ = &segment;
  scheduler_.reset(new (std::nothrow) sched::Scheduler(sched::SchedulerConfig{}));
  if (scheduler_ != nullptr) scheduler_->SetPolicy(policy);
  return running();
}

void LocalScheduler::Stop() { scheduler_.reset(); }

void LocalScheduler::QueueCreated(const XQueue& queue) {
  TimePoint now = MonotonicClock::now();
  scheduler_->AddQueue(IdOf(queue), sched::ProcessId{1}, sched::DeviceId{queue.hwq().device}, queue.hints(),
                       now);
  Observe(queue.index(), now);
}

void LocalScheduler::QueueDestroyed(const XQueue& queue) {
  scheduler_->RemoveQueue(IdOf(queue), MonotonicClock::now());
}

void LocalScheduler::Hints(const XQueue& queue) { scheduler_->SetHints(IdOf(queue), queue.hints()); }

void LocalScheduler::Absent(const XQueue& queue) {
  scheduler_->SetAbsent(IdOf(queue), queue.suspended(), MonotonicClock::now());
}

void LocalScheduler::Timeslice(Duration timeslice) { scheduler_->SetTimeslice(timeslice); }

TimePoint LocalScheduler::Decide(TimePoint now) {
  ipc::ForEachDirty(*segment_, [this, now](uint32_t index) { Observe(index, now); });
  return scheduler_->Decide(now, *this);
}

void LocalScheduler::RestoreControls() {
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) {
    const XQueueHandle handle = queues_.HandleAt(i);
    if (handle == 0) continue;
    ipc::RestoreWords(segment_->blocks[i], ipc::WordsOf(scheduler_->GetControl(sched::QueueId{handle})));
  }
}

void LocalScheduler::Observe(uint32_t index, TimePoint now) {
  XQueueHandle handle = queues_.HandleAt(index);
  if (handle == 0) return;
  const ipc::Progress progress = ipc::ReadProgress(segment_->blocks[index]);
  scheduler_->Progress(sched::QueueId{handle}, progress.submitted, progress.retired, now);
  scheduler_->Moved(sched::QueueId{handle}, progress.moved, now);

  sched::Dependency dependencies[ipc::kMaxDependencies];
  size_t count = 0;
  ipc::ForEachWait(*segment_, index, [&](const ipc::Wait& wait) {
    const XQueueHandle owner = queues_.HandleAt(wait.queue);
    if (owner != 0 && ipc::MeansQueue(wait, owner))
      dependencies[count++] = {sched::QueueId{owner}, wait.until};
  });
  scheduler_->SetDependencies(sched::QueueId{handle}, {dependencies, count});
}

void LocalScheduler::SetControl(sched::QueueId queue, const sched::Control& control) {
  ipc::WriteWords(segment_->blocks[IndexOf(queue)], ipc::WordsOf(control));
}

void LocalScheduler::Query(sched::QueueId queue) { ipc::AskProgress(segment_->blocks[IndexOf(queue)]); }

}  // namespace xsched::preempt
