#include "preempt/scheduling/gate_openers.h"

#include <algorithm>
#include <utility>

namespace xsched::preempt {
namespace {

// How soon to try again if the driver has not opened a gate.
constexpr Duration kTryRefusedAgain = std::chrono::milliseconds(1);

}  // namespace

bool GateOpeners::Request(uint32_t index) {
  MutexLock lock(mutex_);
  if (requested_[index] || retried_[index]) return true;
  if (requests_ >= idle_ && start_thread_("xsched-gates", &GateOpeners::Main, this) != 0) return false;
  requested_[index] = true;
  ++requests_;
  changed_.NotifyAll();
  return true;
}

uint32_t GateOpeners::AwaitNext() {
  MutexLock lock(mutex_);
  ++idle_;
  while (requests_ == 0) changed_.Wait(mutex_);
  --idle_;
  bool* const next = std::find(requested_, requested_ + ipc::kMaxQueues, true);
  *next = false;
  --requests_;
  return static_cast<uint32_t>(next - requested_);
}

bool GateOpeners::OpenGatesOf(uint32_t index) {
  XQueuePin queue = queues_.Pin(queues_.HandleAt(index));
  if (!queue) return true;
  const bool opened = queue->flow().Advance();
  queues_.FinishIfDrained(*queue);
  return opened;
}

bool GateOpeners::BeginRetry(uint32_t index) {
  MutexLock lock(mutex_);
  return !std::exchange(retried_[index], true);
}

void GateOpeners::EndRetry(uint32_t index) {
  MutexLock lock(mutex_);
  retried_[index] = false;
}

void* GateOpeners::Main(void* self) {
  auto& openers = *static_cast<GateOpeners*>(self);
  for (;;) {
    const uint32_t index = openers.AwaitNext();
    while (!openers.OpenGatesOf(index) && openers.BeginRetry(index)) {
      SleepFor(kTryRefusedAgain);
      openers.EndRetry(index);
    }
  }
}

void GateOpeners::ResetAfterFork() {
  mutex_.ResetAfterFork();
  changed_.ResetAfterFork();
  std::fill(requested_, requested_ + ipc::kMaxQueues, false);
  std::fill(retried_, retried_ + ipc::kMaxQueues, false);
  requests_ = idle_ = 0;
}

}  // namespace xsched::preempt
