#include "preempt/gates/flow_control.h"

#include <new>

#include "preempt/gates/caller_waits.h"
#include "preempt/gates/device_gates.h"
#include "preempt/gates/host_gates.h"

namespace xsched::preempt {

FlowControl* FlowControl::Make(XGating gating, FlowState& queue) {
  switch (gating) {
    case kGatingCallerWaits:
      return new (std::nothrow) CallerWaits(queue);
    case kGatingHostGates:
      return new (std::nothrow) HostGates(queue);
    case kGatingDeviceGates:
      return new (std::nothrow) DeviceGates(queue);
  }
  return nullptr;
}

void FlowControl::Begin(const Start& start) {
  start_ = start;
  marked_.store(0, std::memory_order_relaxed);
  drained_at_.store(kTellAgain, std::memory_order_relaxed);
  Reset();
}

void FlowControl::RequestProgress() {
  // A marker that is under way may be in front of the last commands.
  if (!queue_.Idle()) MarkIssued();
}

bool FlowControl::MarkIssued() {
  const uint64_t issued = queue_.issued();
  return queue_.retired() >= issued || marked_.load(std::memory_order_relaxed) >= issued ||
         AppendMarker(issued);
}

void FlowControl::ReportIfDrained(uint64_t end) {
  if (queue_.retired() < end) return;
  if (drained_at_.exchange(end, std::memory_order_relaxed) != end) queue_.NotifyDrained();
}

bool FlowControl::OnlyLauncherAsks() const {
  return ops().finished == nullptr ||
         (ops().only_launcher_asks != nullptr && ops().only_launcher_asks(hwq()));
}

bool FlowControl::AskDevice() {
  if (queue_.draining() || OnlyLauncherAsks()) return false;
  // A launch is in progress, so the queue is not idle, and the driver's answer might wait for the launch.
  if (queue_.Launching()) return false;
  const uint64_t newest = queue_.issued();
  if (!ops().finished(hwq())) return false;
  // More may have been launched meanwhile.
  if (queue_.retired() < newest) ipc::CountFoundIdle(queue_.block());
  queue_.RetiredUpTo(newest);
  return true;
}

bool FlowControl::MayLaunch(uint64_t number) const {
  if (queue_.destroying()) return true;
  if (queue_.HeldByProgram()) return false;
  const uint64_t before = number - 1;
  const uint64_t done = queue_.retired();
  const int64_t in_flight = before > done ? static_cast<int64_t>(before - done) : 0;
  return in_flight < queue_.config().threshold;
}

void FlowControl::WaitUntilMayLaunch(uint64_t number) {
  AwaitRoom([&] { return queue_.HeldByProgram(); }, [&] { return MayLaunch(number); });
}

bool FlowControl::WaitRetired(uint64_t number) {
  if (queue_.retired() >= number) return true;
  if (!PollsMarkers() && AppendMarker(number)) {
    queue_.waiters.Await([&] { return queue_.retired() >= number; });
    return true;
  }
  // After any other error, nothing of the queue will run any more.
  if (ops().synchronize(hwq()) == kXSchedErrorNotAllowed) return false;
  queue_.RetiredUpTo(number);
  return true;
}

bool FlowControl::AppendMarker(uint64_t upto) {
  if (ops().append_marker == nullptr) return false;
  queue_.markers.Count();
  if (ops().append_marker(hwq(), Ticket{queue_.index(), upto}.Pack()) != kXSchedSuccess) {
    queue_.markers.Forget();
    return false;
  }
  if (marked_.load(std::memory_order_relaxed) < upto) marked_.store(upto, std::memory_order_relaxed);
  if (ops().flush != nullptr) ops().flush(hwq());
  return true;
}

}  // namespace xsched::preempt
