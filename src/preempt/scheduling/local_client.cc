#include "preempt/scheduling/local_client.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "base/handle.h"
#include "ipc/control_access.h"
#include "ipc/segment.h"

namespace xsched::preempt {
namespace {

// How often control blocks are checked if a former server may write into them. With the local scheduler its
// words would count.
constexpr Duration kRestoreEvery = std::chrono::milliseconds(60);

// A scheduler's ids are never reused, but slots are. The handle contains the slot and its generation.
sched::QueueId IdOf(const XQueue& queue) { return sched::QueueId{queue.id()}; }
uint32_t IndexOf(sched::QueueId id) { return HandleIndex(static_cast<XQueueHandle>(id)); }

}  // namespace

bool LocalClient::Start(ipc::Segment& segment, const sched::PolicySetting& policy, bool shared) {
  segment_ = &segment;
  shared_ = shared;
  wake_at_ = kNever;
  scheduler_.reset(new (std::nothrow) sched::Scheduler(sched::SchedulerConfig{}));
  if (scheduler_ != nullptr) scheduler_->SetPolicy(policy);
  return connected();
}

void LocalClient::Stop() { scheduler_.reset(); }

bool LocalClient::QueueCreated(const XQueue& queue) {
  const TimePoint now = queue.state().Now();
  scheduler_->AddQueue(IdOf(queue), sched::ProcessId{1}, sched::DeviceId{queue.hwq().device}, queue.hints(),
                       now, {.reports_overruns = queue.state().ReportsOverruns()});
  Observe(queue.index(), now);
  return true;
}

bool LocalClient::QueueDestroyed(const XQueue& queue) {
  scheduler_->RemoveQueue(IdOf(queue), queue.state().Now());
  return true;
}

bool LocalClient::Hints(const XQueue& queue) {
  scheduler_->SetHints(IdOf(queue), queue.hints());
  return true;
}

bool LocalClient::Absent(const XQueue& queue) {
  scheduler_->SetAbsent(IdOf(queue), queue.suspended(), queue.state().Now());
  return true;
}

bool LocalClient::Timeslice(int64_t timeslice_us) {
  scheduler_->SetTimeslice(std::chrono::microseconds(timeslice_us));
  return true;
}

bool LocalClient::AtATime(size_t queues) {
  scheduler_->SetAtATime(queues);
  return true;
}

bool LocalClient::Commit(TimePoint now) {
  Decide(now);
  return true;
}

SchedulerClient::News LocalClient::Serve(TimePoint now) {
  Decide(now);
  if (shared_) {
    RestoreControls();
    wake_at_ = std::min(wake_at_, now + kRestoreEvery);
  }
  return News::kNone;
}

void LocalClient::Decide(TimePoint now) {
  newly_tracked_ = false;
  ObserveDirty(now);
  wake_at_ = scheduler_->Decide(now, *this);
  if (!newly_tracked_) return;
  // Either a launch sees the flag that we have just set, or we see what was launched before.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ObserveDirty(now);
  wake_at_ = scheduler_->Decide(now, *this);
}

void LocalClient::ObserveDirty(TimePoint now) {
  ipc::ForEachDirty(*segment_, [this, now](uint32_t index) { Observe(index, now); });
}

// Corrects what another writer has written into the control blocks, such as a server that hung and continues
// after the process has left it.
void LocalClient::RestoreControls() {
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) {
    const XQueueHandle handle = queues_.HandleAt(i);
    if (handle == 0) continue;
    ipc::RestoreWords(segment_->blocks[i], ipc::WordsOf(scheduler_->GetControl(sched::QueueId{handle})));
  }
}

void LocalClient::Observe(uint32_t index, TimePoint now) {
  XQueueHandle handle = queues_.HandleAt(index);
  if (handle == 0) return;
  const ipc::Progress progress = ipc::ReadProgress(segment_->blocks[index]);
  scheduler_->Moved(sched::QueueId{handle}, progress.moved, now);
  scheduler_->Progress(sched::QueueId{handle}, progress.submitted, progress.retired, now);
  scheduler_->Drained(sched::QueueId{handle}, progress.drained, now);
  scheduler_->FoundIdle(sched::QueueId{handle}, progress.found_idle, now);

  sched::Dependency dependencies[ipc::kMaxDependencies];
  size_t count = 0;
  ipc::ForEachWait(*segment_, index, [&](const ipc::Wait& wait) {
    const XQueueHandle owner = queues_.HandleAt(wait.queue);
    if (owner != 0 && ipc::MeansQueue(wait, owner))
      dependencies[count++] = {sched::QueueId{owner}, wait.until};
  });
  scheduler_->SetDependencies(sched::QueueId{handle}, {dependencies, count});
}

void LocalClient::SetControl(sched::QueueId queue, const sched::Control& control) {
  const uint32_t index = IndexOf(queue);
  ipc::ControlBlock& block = segment_->blocks[index];
  const ipc::SchedulerWords words = ipc::WordsOf(control);
  const bool was_tracked = (ipc::ReadFlags(block) & ipc::kFlagTracked) != 0;
  ipc::WriteWords(block, words);
  if (!words.tracked() || was_tracked) return;
  // It reported nothing so far, and if it is at work, its next launches do not report either.
  segment_->header.dirty[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_relaxed);
  newly_tracked_ = true;
}

void LocalClient::Query(sched::QueueId queue) { ipc::AskProgress(segment_->blocks[IndexOf(queue)]); }

}  // namespace xsched::preempt
