#include "preempt/scheduling/local_scheduler.h"

#include <new>

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

void LocalScheduler::Observe(uint32_t index, TimePoint now) {
  XQueueHandle handle = queues_.HandleAt(index);
  if (handle == 0) return;
  ipc::ControlBlock& block = segment_->blocks[index];
  // `retired` first: it follows `submitted`, so the pair never shows more retired than submitted.
  uint64_t retired = block.retired.load(std::memory_order_acquire);
  uint64_t submitted = block.submitted.load(std::memory_order_acquire);
  scheduler_->Progress(sched::QueueId{handle}, submitted, retired, now);

  sched::Dependency dependencies[ipc::kMaxDependencies];
  size_t count = 0;
  for (const ipc::DependencySlot& slot : segment_->depends[index]) {
    uint64_t until = slot.until.load(std::memory_order_acquire);
    uint32_t owner = slot.queue.load(std::memory_order_relaxed);
    XQueueHandle owner_handle = until != 0 && owner < ipc::kMaxQueues ? queues_.HandleAt(owner) : 0;
    if (owner_handle != 0 && ipc::MeansQueue(slot, owner_handle))
      dependencies[count++] = {sched::QueueId{owner_handle}, until};
  }
  scheduler_->SetDependencies(sched::QueueId{handle}, {dependencies, count});
}

void LocalScheduler::SetControl(sched::QueueId queue, const sched::Control& control) {
  ipc::ControlBlock& block = segment_->blocks[IndexOf(queue)];
  uint32_t flags = (control.tracked ? ipc::kFlagTracked : 0) | (control.gated ? ipc::kFlagGated : 0) |
                   (control.sliced ? ipc::kFlagSliced : 0);
  block.flags.store(flags, std::memory_order_release);
  block.gate.store(control.run ? ipc::kGateRun : ipc::kGateHold, std::memory_order_release);
}

void LocalScheduler::Query(sched::QueueId queue) {
  segment_->blocks[IndexOf(queue)].query.fetch_add(1, std::memory_order_release);
}

}  // namespace xsched::preempt
