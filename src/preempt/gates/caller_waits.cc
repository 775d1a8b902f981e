#include "preempt/gates/caller_waits.h"

#include <algorithm>

#include "base/python_lock.h"

namespace xsched::preempt {
namespace {

// A waiting thread polls continuously at first, for short commands, and then from time to time.
constexpr Duration kPollClosely = std::chrono::microseconds(50);
constexpr Duration kNap = std::chrono::microseconds(30);

// If a full queue may run and retires nothing for long, the device may wait for the thread that waits here,
// for example to write to memory that the device reads. That is probable after several times the usual time
// of a command; while that is not known, and with long commands, only after a second.
constexpr Duration kLeastPatience = std::chrono::milliseconds(80);
constexpr Duration kMostPatience = std::chrono::seconds(1);
constexpr int kUsualTimes = 4;

Duration Patience(Duration pace) {
  if (pace == Duration::zero()) return kMostPatience;
  return std::clamp(kUsualTimes * pace, kLeastPatience, kMostPatience);
}

}  // namespace

void CallerWaits::Reset() {
  markers_.Reset();
  presumed_.store(UINT64_MAX, std::memory_order_relaxed);
  let_go_at_.store(UINT64_MAX, std::memory_order_relaxed);
}

GateChain::Now CallerWaits::Now() const {
  const bool ours = !queue_.destroying() && !queue_.process().shut_down();
  const uint32_t flags = queue_.flags();
  const bool gated = (flags & ipc::kFlagGated) != 0 || queue_.self_gated.load(std::memory_order_relaxed);
  return {queue_.retired(), queue_.Held(), ours && gated, flags != 0, queue_.Now(), queue_.issued()};
}

bool CallerWaits::MustWaitBefore(uint64_t number) {
  const LaunchConfig config = queue_.config();
  return markers_.MarkBefore(number, Now(), {config.threshold, config.batch_size, start_.host_gate_latency},
                             *this);
}

bool CallerWaits::BeforeLaunch(uint64_t number, uint32_t flags) {
  if (PollsMarkers()) return MustWaitBefore(number);
  if ((flags & ipc::kFlagGated) != 0 || queue_.suspended()) WaitWhileHeldOrFull(number);
  return false;
}

void CallerWaits::WaitWhileHeldOrFull(uint64_t number) {
  AwaitRoom([&] { return queue_.Held(); }, [&] { return !queue_.Held() && MayLaunch(number); });
}

void CallerWaits::PollMarkers() {
  ops().poll_markers(hwq());
  markers_.OnRetired(queue_.retired(), queue_.markers.reached_at());
}

template <typename Done, typename Wake>
void CallerWaits::WaitPolling(Done&& done, Wake&& wake) {
  TimePoint closely_until = queue_.Now() + kPollClosely;
  while (!queue_.Held() && queue_.Now() < closely_until) {
    if (done()) return;
    PollMarkers();
  }
  if (done()) return;
  // What the queue waits for may be done by a thread of the same Python program: a resume, or what a running
  // command needs.
  PythonLockReleased released;
  while (!done()) {
    if (queue_.Held()) {
      queue_.waiters.Await(wake);
      closely_until = queue_.Now() + kPollClosely;
      continue;
    }
    PollMarkers();
    const TimePoint now = queue_.Now();
    if (now >= closely_until) queue_.waiters.Nap(now + kNap);
  }
}

// Where no other thread may ask, the end of the last commands is known by a marker behind them. Two launches
// at the same time may leave the later one without: it is known with the next launch.
void CallerWaits::AfterLaunch(uint64_t number) {
  if (!PollsMarkers() || !OnlyLauncherAsks() || queue_.issued() + 1 < number) return;
  GateChain::Now now = Now();
  now.launched = number;
  markers_.MarkLaunched(now, *this);
}

// So many more as may usually be in flight: if the device does not wait for the thread, what is in flight
// stays bounded by the time.
void CallerWaits::LetGo(uint64_t number, uint64_t retired) {
  let_go_upto_.store(number - 1 + static_cast<uint64_t>(queue_.config().threshold),
                     std::memory_order_relaxed);
  let_go_at_.store(retired, std::memory_order_release);
}

bool CallerWaits::MayPass(uint64_t number) const {
  return let_go_at_.load(std::memory_order_acquire) == queue_.retired() &&
         number <= let_go_upto_.load(std::memory_order_relaxed);
}

void CallerWaits::WaitBeforeLaunch(uint64_t number) {
  uint64_t seen = queue_.retired();
  TimePoint since = queue_.Now();
  const auto done = [&] {
    if (!MustWaitBefore(number)) return true;
    const TimePoint now = queue_.Now();
    if (queue_.retired() != seen || queue_.Held()) {
      seen = queue_.retired();
      since = now;
    }
    if (now >= since + Patience(markers_.pace()) && !MayPass(number)) LetGo(number, seen);
    return !queue_.Held() && MayPass(number);
  };
  WaitPolling(done, [&] { return !queue_.Held(); });
}

void CallerWaits::WaitUntilMayLaunch(uint64_t number) {
  if (!PollsMarkers()) return FlowControl::WaitUntilMayLaunch(number);
  const auto may_launch = [&] {
    if (MayLaunch(number)) return true;
    if (!queue_.Held()) MarkProgress();
    return false;
  };
  WaitPolling(may_launch, [&] { return !queue_.Held() || MayLaunch(number); });
}

void CallerWaits::MarkProgress() {
  if (!PollsMarkers()) return RequestProgress();
  markers_.MarkLaunched(Now(), *this);
}

void CallerWaits::RequestProgress() {
  if (!PollsMarkers()) return FlowControl::RequestProgress();
  PollMarkers();
  const uint64_t issued = queue_.issued();
  if (!Finished() && !queue_.markers.UnderWay() && AskDevice()) Confirm(issued);
  // A launch that waits for the end of the hold is not on the device. It has put a marker behind those
  // before.
  if (queue_.DrainIsAwaited()) ReportIfDrained(queue_.issued());
}

bool CallerWaits::OverrunIsPolled() const {
  return PollsMarkers() && queue_.DrainIsAwaited() && queue_.retired() < queue_.issued();
}

void CallerWaits::OnCapture() {
  if (!PollsMarkers()) return;
  const uint64_t issued = queue_.issued();
  if (queue_.retired() < issued) presumed_.store(issued, std::memory_order_release);
  // Before the markers are reported, so that the pace is not taken from that.
  markers_.OnPresumed(issued);
  if (ops().put_markers_away != nullptr) ops().put_markers_away(hwq());
  queue_.RetiredUpTo(issued);
}

void CallerWaits::Confirm(uint64_t number) {
  uint64_t presumed = presumed_.load(std::memory_order_relaxed);
  if (presumed <= number) presumed_.compare_exchange_strong(presumed, UINT64_MAX, std::memory_order_relaxed);
}

bool CallerWaits::WaitRetired(uint64_t number) {
  if (!Presumes()) return FlowControl::WaitRetired(number);
  const uint64_t issued = queue_.issued();
  if (ops().synchronize(hwq()) == kXSchedErrorNotAllowed) return false;
  Confirm(issued);
  queue_.RetiredUpTo(number);
  return true;
}

bool CallerWaits::Advance() {
  markers_.OnRetired(queue_.retired(), queue_.markers.reached_at());
  return true;
}

void CallerWaits::OnSuspend() {
  // A program that has suspended the queue will do so again, and must not wait for many commands in flight
  // then.
  if (PollsMarkers()) queue_.self_gated.store(true, std::memory_order_relaxed);
}

}  // namespace xsched::preempt
