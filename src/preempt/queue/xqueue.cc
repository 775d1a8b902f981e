#include "preempt/queue/xqueue.h"

#include <algorithm>
#include <utility>

#include "preempt/api/launch.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/agent.h"
#include "preempt/scheduling/driver_caller.h"
#include "preempt/scheduling/process_slices.h"

namespace xsched::preempt {
namespace {

// A thread that has launched nothing for so long counts as not launching.
constexpr Duration kLaunchingPaused = std::chrono::milliseconds(1);

// A ticket holds a slot and a command number: 2^48 commands are 8 years at one per microsecond.
constexpr int kNumberBits = 48;

constexpr uint64_t Ticket(uint32_t index, uint64_t number) { return uint64_t{index} << kNumberBits | number; }

}  // namespace

// Not a base of XQueue: a pointer to a vtable in each slot would make the array of slots part of the
// library's file.
class XQueue::Driver final : public GateDriver {
 public:
  explicit Driver(XQueue& queue) : queue_(queue), ops_(queue.hwq_->ops), hwq_(queue.hwq_->impl) {}
  bool AppendGate(uint64_t* gate) override { return ops_.append_gate(hwq_, gate) == kXSchedSuccess; }
  void OpenGate(uint64_t gate) override { ops_.open_gate(hwq_, gate); }
  bool AppendMarker(uint64_t upto) override { return queue_.AppendMarker(upto); }

 private:
  XQueue& queue_;
  const XHwQueueOps& ops_;
  void* hwq_;
};

uint64_t XQueue::LaunchBegin() {
  // seq_cst, against RetiredUpTo: either we see that the queue was idle, or it sees our command.
  uint64_t number = block_->submitted.fetch_add(1, std::memory_order_seq_cst) + 1;
  uint32_t flags = block_->flags.load(std::memory_order_acquire);
  if (flags == 0 && !suspended() && !gates_.HasClosed() && !self_gated_.load(std::memory_order_relaxed) &&
      XQueueTable::hard_stops() == 0) [[likely]] {
    return number;
  }
  return LaunchBeginScheduled(number, flags);
}

uint64_t XQueue::LaunchBeginScheduled(uint64_t number, uint32_t flags) {
  Agent& agent = Agent::Get();
  if (agent.shut_down()) return number;
  if (flags != 0 && !agent.scheduled()) flags = 0;  // as in Held
  if (flags != 0) {
    agent.SomethingIsTaken();
    if (retired() + 1 >= number) agent.RingScheduler(index_);
  }
  if (XQueueTable::hard_stops() != 0 && !KeepsStill()) XQueueTable::LiftHardStops(*this);
  if (GatesInLine()) {
    InlineGateBefore(number, flags);
    return number;
  }
  if (PollsMarkers()) {
    WaitBefore(number);
    return number;
  }
  if (hwq_->ops.gating == kGatingCallerWaits) {
    if ((flags & ipc::kFlagGated) != 0 || suspended()) WaitUntilMayLaunch(number);
    return number;
  }
  GateChain::Now seen = Now();
  Driver driver(*this);
  gates_.BeforeLaunch(number, seen, Limits(), driver);
  // What we saw may have changed before our gate was there to be opened by whoever changed it.
  if (gates_.HasClosed() && (retired() != seen.retired || Held() != seen.hold))
    Attend(GateChain::IfBusy::kWait);
  return number;
}

void XQueue::LaunchEnd(uint64_t number, bool launched) {
  if (!launched && retired() + 1 == number) RetiredUpTo(number);
  if (launched && GatesInLine()) InlineReportAfter(number);
  // Release: what the driver has taken comes before it.
  settled_.fetch_add(1, std::memory_order_release);
}

uint64_t XQueue::Settled() const {
  // Never more than there are: a launch that began on the queue which this slot had before ends here.
  return std::min(settled_.load(std::memory_order_acquire), submitted());
}

void XQueue::RetiredUpTo(uint64_t number) {
  uint64_t seen = block_->retired.load(std::memory_order_relaxed);
  do {
    if (seen >= number) {
      TellIdle(number);
      return;
    }
  } while (!block_->retired.compare_exchange_weak(seen, number, std::memory_order_seq_cst));
  Agent& agent = Agent::Get();
  if (block_->flags.load(std::memory_order_acquire) != 0 && !TellIdle(number) &&
      report_progress_.exchange(false, std::memory_order_seq_cst)) {
    agent.RingScheduler(index_);
  }
  if (gates_.HasClosed()) agent.Wake();
  if (waiters_.load(std::memory_order_seq_cst) != 0) NotifyWaiters();
}

bool XQueue::TellIdle(uint64_t number) {
  if (block_->flags.load(std::memory_order_acquire) == 0 || number < submitted()) return false;
  // A program may ask again and again.
  if (told_idle_.exchange(number, std::memory_order_relaxed) != number) Agent::Get().RingScheduler(index_);
  return true;
}

void XQueue::MarkerReached(uint64_t number) {
  retired_at_ns_.store(MonotonicClock::now().time_since_epoch().count(), std::memory_order_relaxed);
  RetiredUpTo(number);
  // Last: the slot may be used again from here on.
  markers_.fetch_sub(1, std::memory_order_release);
}

bool XQueue::Idle() const { return retired() >= submitted(); }

void XQueue::RequestProgress() {
  if (PollsMarkers()) PollMarkers();
  if (Idle() || markers_.load(std::memory_order_acquire) != 0) return;
  if (GatesInLine() || PollsMarkers()) {
    AskDevice();
  } else {
    AppendMarker(Settled());
  }
}

void XQueue::AskDriver() {
  if (Agent::Get().shut_down()) return;
  if (GatesInLine() && !AnswerIsNear()) return;
  RequestProgress();
}

// A driver that is asked about a full queue answers when it is not full any more. While many commands are
// unreported, it is asked only where nobody seems to launch: its last commands must become known all the
// same.
bool XQueue::AnswerIsNear() {
  if (!MayBeFull()) return true;
  const uint64_t newest = submitted();
  const TimePoint now = MonotonicClock::now();
  if (newest != seen_submitted_) {
    seen_submitted_ = newest;
    seen_at_ = now;
  }
  return !Held() && now >= seen_at_ + kLaunchingPaused;
}

void XQueue::MarkProgress() {
  if (!PollsMarkers()) {
    RequestProgress();
  } else {
    Driver driver(*this);
    gates_.MarkLaunched(Now(), driver);
  }
}

bool XQueue::Held() const {
  if (destroying_.load(std::memory_order_acquire) || Agent::Get().shut_down()) return false;
  // A word that a scheduler wrote when it was ours no more holds nobody.
  return suspended() ||
         (block_->gate.load(std::memory_order_acquire) == ipc::kGateHold && Agent::Get().scheduled());
}

XQueue::Left XQueue::Attend(GateChain::IfBusy if_busy) {
  Left left;
  RequestUrgency();
  if (XQueueTable::hard_stops() != 0 && !KeepsStill() && !Idle()) XQueueTable::LiftHardStops(*this);
  left.stopped = !ApplyLevels();
  AnswerQuery();
  gates_.OnRetired(retired(), TimePoint(Duration(retired_at_ns_.load(std::memory_order_relaxed))));
  Driver driver(*this);
  const int opened = gates_.Advance(submitted(), Now(), Limits(), driver, if_busy);
  if (opened > 0 && hwq_->ops.flush != nullptr) hwq_->ops.flush(hwq_->impl);
  left.gates = opened == GateChain::kBusy;
  if (waiters_.load(std::memory_order_seq_cst) != 0) NotifyWaiters();
  return left;
}

void XQueue::AnswerQuery() {
  // While it is stopped there is nothing to tell; and a driver that is asked may wait for what is stopped.
  if (PollsMarkers() && Stopped()) return;
  uint32_t query = block_->query.load(std::memory_order_acquire);
  if (answered_query_.exchange(query, std::memory_order_acq_rel) == query) return;
  // What is known is told at once; what is not, when the driver has said it or the next marker is reached.
  report_progress_.store(!Idle(), std::memory_order_seq_cst);
  Agent::Get().RingScheduler(index_);
  if (!Idle()) DriverCaller::Get().Request(*this, DriverCaller::kProgress);
}

bool XQueue::Stopped() const {
  MutexLock lock(level_mutex_);
  return interrupted_ || (deactivated_ && hwq_->ops.deactivate_interrupts);
}

bool XQueue::ApplyLevels() {
  bool done = true;
  if (GatesInLine() || StopsProcess()) done = TellDevice();
  if (hwq_->ops.deactivate != nullptr) done &= ApplyDeactivation(Held() && !ForcedOpen());
  return done;
}

// False: what was stopped does not go on yet.
bool XQueue::ApplyDeactivation(bool hold) {
  const XHwQueueOps& ops = hwq_->ops;
  MutexLock lock(level_mutex_);
  if (hold && level() >= kPreemptLevelDeactivate && !deactivated_) {
    deactivated_ = ops.deactivate(hwq_->impl) == kXSchedSuccess;
  }
  if (hold && level() >= kPreemptLevelInterrupt && deactivated_ && !interrupted_ &&
      ops.interrupt != nullptr) {
    interrupted_ = ops.interrupt(hwq_->impl) == kXSchedSuccess;
  }
  if (!hold && interrupted_) interrupted_ = ops.restore(hwq_->impl) != kXSchedSuccess;
  if (!hold && deactivated_) deactivated_ = ops.reactivate(hwq_->impl) != kXSchedSuccess;
  return hold || (!interrupted_ && !deactivated_);
}

void XQueue::Suspend(bool suspended) {
  // Who has suspended it will again, and must not wait for all that was launched ahead.
  if (suspended && PollsMarkers()) self_gated_.store(true, std::memory_order_relaxed);
  suspended_.store(suspended, std::memory_order_seq_cst);
  if (Attend(GateChain::IfBusy::kWait).stopped || !ProcessSlices::Get().Settled())
    Agent::Get().GiveBackLater();
  XQueueTable::RequestUrgencies(XQueueTable::Wait::kBriefly);
  Agent::Get().AbsentChanged(*this);
}

bool XQueue::MayLaunch(uint64_t number) const {
  if (destroying_.load(std::memory_order_acquire)) return true;
  // The device waits for the scheduler by itself; what the program suspended can still be dropped.
  if (GatesInLine()) return !suspended();
  uint64_t before = number - 1;
  uint64_t done = retired();
  int64_t in_flight = before > done ? static_cast<int64_t>(before - done) : 0;
  return !Held() && in_flight < threshold_.load(std::memory_order_relaxed);
}

void XQueue::WaitUntilMayLaunch(uint64_t number) {
  if (MayLaunch(number)) return;
  if (PollsMarkers()) {
    WaitUntilMayLaunchPolling(number);
    return;
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  if (!Held()) AppendMarker(Settled());
  wait_mutex_.Lock();
  while (!MayLaunch(number)) wait_condition_.Wait(wait_mutex_);
  wait_mutex_.Unlock();
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

void XQueue::WaitRetired(uint64_t number) {
  if (retired() >= number) return;
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  if (!PollsMarkers() && AppendMarker(number)) {
    wait_mutex_.Lock();
    while (retired() < number) wait_condition_.Wait(wait_mutex_);
    wait_mutex_.Unlock();
  } else {
    hwq_->ops.synchronize(hwq_->impl);
    RetiredUpTo(number);
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

void XQueue::WaitInFlight() {
  bool deactivated;
  bool stopped;
  {
    MutexLock lock(level_mutex_);
    deactivated = deactivated_;
    stopped = deactivated_ ? hwq_->ops.deactivate_interrupts : interrupted_ && !GatesInLine();
  }
  if (stopped) return;
  if (deactivated) {
    hwq_->ops.synchronize(hwq_->impl);
    return;
  }
  if (GatesInLine()) {
    WaitStopped();
    return;
  }
  uint64_t newest = Settled();
  uint64_t open_end = gates_.OpenEnd(newest);
  if (open_end == newest) {
    WaitRetired(newest);
    return;
  }
  // A marker stands before every gate.
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  wait_mutex_.Lock();
  while (retired() < open_end) wait_condition_.Wait(wait_mutex_);
  wait_mutex_.Unlock();
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

void XQueue::NotifyWaiters() {
  MutexLock lock(wait_mutex_);
  wait_condition_.NotifyAll();
}

LaunchConfig XQueue::config() const {
  return {threshold_.load(std::memory_order_relaxed), batch_size_.load(std::memory_order_relaxed)};
}

void XQueue::SetLevel(XPreemptLevel level) {
  level_.store(level, std::memory_order_relaxed);
  if (Attend(GateChain::IfBusy::kWait).stopped || !ProcessSlices::Get().Settled())
    Agent::Get().GiveBackLater();
}

void XQueue::SetConfig(const LaunchConfig& config) {
  threshold_.store(config.threshold, std::memory_order_relaxed);
  batch_size_.store(config.batch_size, std::memory_order_relaxed);
  Attend(GateChain::IfBusy::kWait);
}

sched::Hints XQueue::hints() const {
  MutexLock lock(hints_mutex_);
  return hints_;
}

void XQueue::SetHints(const sched::Hints& hints) {
  {
    MutexLock lock(hints_mutex_);
    hints_ = hints;
  }
  XQueueTable::PrioritiesChanged();
}

// Above the least urgent of the process's queues on the device: hints that are equal make no difference.
int XQueue::Urgency() const {
  // What a server says may be any number.
  const int64_t steps = int64_t{hints().priority} - XQueueTable::LeastPriority(hwq_->device);
  constexpr int64_t kMost = PRIORITY_MAX - PRIORITY_NO_EXECUTE;
  return static_cast<int>(std::clamp<int64_t>(steps, 0, kMost));
}

void XQueue::NoteUrgency() {
  if (hwq_->ops.note_urgency == nullptr) return;
  const int urgency = Urgency();
  if (std::exchange(urgency_, urgency) != urgency) hwq_->ops.note_urgency(hwq_->impl, urgency);
}

bool XQueue::UrgencyIsNews() const {
  if (hwq_->ops.apply_urgency == nullptr) return false;
  if (draining_.load(std::memory_order_acquire) || destroying_.load(std::memory_order_acquire)) return false;
  // Other queues' hints count as well.
  if (told_priorities_.load(std::memory_order_relaxed) == XQueueTable::priorities_version()) return false;
  return XQueueTable::PrioritiesHaveDiffered(hwq_->device);
}

bool XQueue::RequestUrgency() {
  return UrgencyIsNews() && DriverCaller::Get().Request(*this, DriverCaller::kUrgency);
}

bool XQueue::TellUrgency() {
  if (!UrgencyIsNews() || Agent::Get().shut_down()) return true;
  // The driver would block, with every gate open meanwhile.
  if (XQueueTable::AnyMayBeFull()) return false;
  // Before looking at them: what changes meanwhile is told again.
  const uint64_t version = XQueueTable::priorities_version();
  XQueueTable::NoteUrgencies();
  if (hwq_->ops.apply_urgency(hwq_->impl) != kXSchedErrorNotAllowed)
    told_priorities_.store(version, std::memory_order_relaxed);
  return true;
}

GateChain::Now XQueue::Now() const {
  bool ours = !destroying_.load(std::memory_order_acquire) && !Agent::Get().shut_down();
  uint32_t flags = block_->flags.load(std::memory_order_acquire);
  if (!Agent::Get().scheduled()) flags = 0;
  bool gated = (flags & ipc::kFlagGated) != 0 || self_gated_.load(std::memory_order_relaxed);
  const uint64_t launched = PollsMarkers() ? Settled() : UINT64_MAX;
  return {retired(), Held(), ours && gated, flags != 0, MonotonicClock::now(), launched};
}

bool XQueue::MustWaitBefore(uint64_t number) {
  Driver driver(*this);
  return gates_.MarkBefore(number, Now(), Limits(), driver);
}

GateChain::Limits XQueue::Limits() const {
  LaunchConfig launch = config();
  return {launch.threshold, launch.batch_size, GetSettings().latency};
}

bool XQueue::AppendMarker(uint64_t upto) {
  if (hwq_->ops.append_marker == nullptr) return false;
  markers_.fetch_add(1, std::memory_order_relaxed);
  if (hwq_->ops.append_marker(hwq_->impl, Ticket(index_, upto)) != kXSchedSuccess) {
    markers_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  if (hwq_->ops.flush != nullptr) hwq_->ops.flush(hwq_->impl);
  return true;
}

}  // namespace xsched::preempt

void HwQueueRetired(uint64_t ticket) {
  using namespace xsched::preempt;
  auto index = static_cast<uint32_t>(ticket >> kNumberBits);
  if (index >= xsched::ipc::kMaxQueues) return;
  XQueueTable::Slot(index).MarkerReached(ticket & ((uint64_t{1} << kNumberBits) - 1));
}
