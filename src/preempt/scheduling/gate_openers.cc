#include "preempt/scheduling/gate_openers.h"

#include <algorithm>

namespace xsched::preempt {
namespace {

// How soon to try again if the driver has not opened a gate.
constexpr Duration kTryRefusedAgain = std::chrono::milliseconds(1);

}  // namespace

bool GateOpeners::Request(uint32_t index) {
  MutexLock lock(mutex_);
  Work& work = work_[index];
  if (work == Work::kUnderWay) work = Work::kRequestedUnderWay;
  if (work != Work::kNone) return true;
  if (requests_ >= idle_ && start_thread_("xsched-gates", &GateOpeners::Main, this) != 0) return false;
  work = Work::kRequested;
  ++requests_;
  changed_.NotifyAll();
  return true;
}

uint32_t GateOpeners::AwaitNext() {
  MutexLock lock(mutex_);
  ++idle_;
  while (requests_ == 0) changed_.Wait(mutex_);
  --idle_;
  Work* const next = std::find(work_, work_ + ipc::kMaxQueues, Work::kRequested);
  *next = Work::kUnderWay;
  --requests_;
  return static_cast<uint32_t>(next - work_);
}

bool GateOpeners::OpenGatesOf(uint32_t index) {
  XQueuePin queue = queues_.Pin(queues_.HandleAt(index));
  if (!queue) return true;
  const bool opened = queue->flow().Advance();
  queues_.FinishIfDrained(*queue);
  return opened;
}

bool GateOpeners::Finish(uint32_t index) {
  MutexLock lock(mutex_);
  Work& work = work_[index];
  work = work == Work::kRequestedUnderWay ? Work::kUnderWay : Work::kNone;
  return work == Work::kNone;
}

void* GateOpeners::Main(void* self) {
  auto& openers = *static_cast<GateOpeners*>(self);
  for (;;) {
    const uint32_t index = openers.AwaitNext();
    do {
      while (!openers.OpenGatesOf(index)) SleepFor(kTryRefusedAgain);
    } while (!openers.Finish(index));
  }
}

void GateOpeners::ResetAfterFork() {
  mutex_.ResetAfterFork();
  changed_.ResetAfterFork();
  std::fill(work_, work_ + ipc::kMaxQueues, Work::kNone);
  requests_ = idle_ = 0;
}

}  // namespace xsched::preempt
