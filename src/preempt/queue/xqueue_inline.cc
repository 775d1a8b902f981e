// The part of XQueue for devices that open their gates themselves (inline_gates.h).
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "ipc/control_access.h"
#include "preempt/queue/xqueue.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/agent.h"
#include "preempt/scheduling/process_slices.h"

namespace xsched::preempt {
namespace {

// Longer than a device takes from looking at a gate's words to reporting that it went through.
constexpr useconds_t kStoppedPollUs = 10;

constexpr int kSlicedFactor = 20;

}  // namespace

void XQueue::InlineGateBefore(uint64_t number, uint32_t flags) {
  if (gates_failed_.load(std::memory_order_relaxed)) return;
  InlineGates::Now now{};
  now.retired = retired();
  now.hold = Held();
  now.gated = (flags & ipc::kFlagGated) != 0 || self_gated_.load(std::memory_order_relaxed);
  now.pausable = pausable_.load(std::memory_order_relaxed);
  // At level 1 no more is in flight than the launch config says.
  now.at_most = level() == kPreemptLevelBlock ? config().threshold : INT64_MAX;
  // Where time slices have served the rival before any gate could, gates only keep the queue from coming
  // back.
  now.latency = GetSettings().gate_latency * ((flags & ipc::kFlagSliced) != 0 ? kSlicedFactor : 1);
  now.time = MonotonicClock::now();
  if (!inline_gates_.GateBefore(number, now)) return;
  const XControlWords words = Words(now.pausable);
  if (hwq_->ops.append_device_gate(hwq_->impl, &words, number - 1) == kXSchedSuccess) {
    inline_gates_.Reported(number - 1);
  } else if (!gates_failed_.exchange(true)) {
    XSCHED_WARN("the driver refused a gate: this queue goes on unscheduled");
  }
}

void XQueue::InlineReportAfter(uint64_t number) {
  if ((block_->flags.load(std::memory_order_relaxed) & ipc::kFlagTracked) == 0) return;
  const XHwQueueOps& ops = hwq_->ops;
  if (!inline_gates_.ReportAfter(number, ops.finished == nullptr, MonotonicClock::now())) return;
  const XControlWords words = Words(false);
  if (ops.append_progress(hwq_->impl, &words, number) == kXSchedSuccess) inline_gates_.Reported(number);
}

void XQueue::AppendLastReport() {
  if (!DeviceAtWork()) return;
  const XControlWords words = Words(false);
  const uint64_t newest = Settled();
  const XHwQueueOps& ops = hwq_->ops;
  if (ops.append_progress(hwq_->impl, &words, newest) == kXSchedSuccess) {
    inline_gates_.Reported(newest);
  } else if (ops.finished != nullptr && !Launching() && ops.finished(hwq_->impl)) {
    // A context that has failed takes no report, and what was enqueued before will not report either.
    RetiredUpTo(std::max(newest, inline_gates_.last_report()));
  }
}

bool XQueue::DeviceAtWork() const {
  const uint64_t last = inline_gates_.last_report();
  return last != 0 && retired() < last;
}

void XQueue::AskDevice() {
  const XHwQueueOps& ops = hwq_->ops;
  if (ops.finished == nullptr || draining_.load(std::memory_order_acquire)) return;
  // Not idle, obviously; and a driver that is asked may wait for the launch.
  if (Launching()) return;
  const uint64_t newest = Settled();
  if (ops.finished(hwq_->impl)) RetiredUpTo(newest);
}

void XQueue::WaitStopped() {
  const uint64_t newest = Settled();
  // Seen twice: a device that was just going through a gate has reported it by then.
  for (int seen = 0; seen < 2 && !destroying_.load(std::memory_order_acquire); usleep(kStoppedPollUs)) {
    if (HardStopped()) return;
    AskDevice();
    uint64_t passed = block_->passed.load(std::memory_order_acquire);
    seen = inline_gates_.Stopped(passed, retired(), newest) ? seen + 1 : 0;
  }
}

bool XQueue::ForcedOpen() const {
  return XQueueTable::all_forced_open() || destroying_.load(std::memory_order_acquire) ||
         Agent::Get().shut_down();
}

// False: what was stopped does not go on yet.
bool XQueue::TellDevice() {
  MutexLock lock(level_mutex_);
  const bool forced = ForcedOpen();
  const bool lifted = forced || (GatesInLine() && XQueueTable::suspensions_lifted());
  ipc::ForceOpen(*block_, forced || !Agent::Get().scheduled());
  block_->pause.store(suspended() && !lifted ? 1 : 0, std::memory_order_seq_cst);
  if (!StopsProcess()) return true;
  const bool stop = !lifted && WantsHardStop();
  if (stop && !interrupted_) HardStop();
  return stop || !interrupted_ || EndHardStop();
}

bool XQueue::StopsProcess() const {
  return hwq_->ops.interrupt != nullptr && hwq_->ops.deactivate == nullptr;
}

bool XQueue::WantsHardStop() const {
  // With gates in line it is the program's own doing: the scheduler stops such queues by gates and time
  // slices.
  if (GatesInLine()) return suspended() && level() >= kPreemptLevelInterrupt;
  return Held() && level() >= kPreemptLevelDeactivate && retired() < Settled();
}

bool XQueue::HardStopped() const {
  MutexLock lock(level_mutex_);
  return interrupted_;
}

// REQUIRES: level_mutex_.
void XQueue::HardStop() {
  // Before looking at the others: whoever launches from now on sees it, and lifts it.
  XQueueTable::CountHardStop(1);
  // It stops everything of the process on the device.
  interrupted_ = XQueueTable::OthersAreQuiet(*this) && hwq_->ops.interrupt(hwq_->impl) == kXSchedSuccess;
  if (!interrupted_) XQueueTable::CountHardStop(-1);
}

// REQUIRES: level_mutex_.
bool XQueue::EndHardStop() {
  if (hwq_->ops.restore(hwq_->impl) != kXSchedSuccess) return false;
  interrupted_ = false;
  XQueueTable::CountHardStop(-1);
  return true;
}

void XQueue::LiftHardStop() {
  bool done;
  {
    MutexLock lock(level_mutex_);
    if (!interrupted_ || !StopsProcess()) return;
    done = EndHardStop();
  }
  if (done && ProcessSlices::Get().Settled()) {
    Agent::Get().Wake();  // it may have been asked something meanwhile
  } else {
    Agent::Get().GiveBackLater();
  }
}

XControlWords XQueue::Words(bool pausable) const {
  XControlWords words{};
  Agent::Get().SharedMemory(&words.memory, &words.memory_size);
  // The device reads `gate` and `open` at once.
  words.gate = reinterpret_cast<uint32_t*>(&block_->gate);
  words.gate_mask = ipc::kDeviceGateMask;
  words.retired = reinterpret_cast<uint64_t*>(&block_->retired);
  if (pausable) {
    words.pause = reinterpret_cast<uint32_t*>(&block_->pause);
    words.passed = reinterpret_cast<uint64_t*>(&block_->passed);
  }
  return words;
}

}  // namespace xsched::preempt
