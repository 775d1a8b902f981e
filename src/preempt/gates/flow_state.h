// What flow control knows of one queue, and shares with its launching threads, the device and the scheduler:
// how many commands were submitted, issued and retired, whether the queue is held, and what to notify when it
// makes progress.
//
//   submitted   launches that have begun
//   issued      launches that have returned from the driver: a count, not a prefix, because launches of
//               several threads may return out of order
//   retired     commands that are known to have finished, in order
//
// Part of a queue's slot: all zero until Begin, reused, and never freed. Thread-safe, except for Begin.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "hal/contract.h"
#include "ipc/control_access.h"
#include "ipc/control_block.h"
#include "preempt/gates/launch_config.h"
#include "preempt/gates/markers.h"
#include "preempt/gates/process_state.h"
#include "preempt/gates/quiet_span.h"
#include "preempt/gates/signals.h"
#include "preempt/gates/waiters.h"
#include "xsched/types.h"

namespace xsched::preempt {

class FlowState {
  // Every launch reads these, up to issued_, and writes that one: all in one cache line.
  alignas(64) ipc::ControlBlock* block_ = nullptr;
  const ProcessState* process_ = nullptr;
  std::atomic<uint64_t> name_{0};
  std::atomic<bool> suspended_{false};

 public:
  // The number of closed host gates, which GateChain maintains.
  std::atomic<uint32_t> closed_gates{0};
  // What is in flight is bounded, although no scheduler has asked for it. Set by flow control.
  std::atomic<bool> self_gated{false};

 private:
  std::atomic<uint64_t> issued_{0};

 public:
  struct Start {
    uint32_t index;
    ipc::ControlBlock* block;  // reset
    const ProcessState* process;
    Signals* signals;
    XGating gating;
    XPreemptLevel level;
    LaunchConfig config;
    Clock clock = &MonotonicClock::now;
    Clock rough_clock = &MonotonicClock::roughly_now;
    bool polls_markers = false;  // the driver does not report them
  };

  constexpr FlowState() = default;
  // Begins the slot's next queue. REQUIRES: no marker of the last one is pending.
  void Begin(const Start& start);

  // ---- the hot path ----

  // Counts a beginning launch. Returns its number: 1, 2, …
  uint64_t CountLaunch() { return ipc::CountSubmitted(*block_); }
  // The launch has returned from the driver. Release: the driver's work in it happens before.
  void CountIssued() { issued_.fetch_add(1, std::memory_order_release); }
  // The words in the control block. A former scheduler may have written them.
  uint32_t raw_flags() const { return ipc::ReadFlags(*block_); }
  // True if nothing in this process keeps the queue from launching.
  bool Unhindered() const {
    return !suspended() && closed_gates.load(std::memory_order_acquire) == 0 &&
           !self_gated.load(std::memory_order_relaxed) && process_->hard_stops() == 0;
  }
  // True if launch `number`, which found these flags, needs nothing although a scheduler is interested in the
  // queue.
  bool Quiet(uint64_t number, uint32_t flags) const {
    return quiet.Has(number, flags & ~ipc::kFlagCounted, retired()) && !ipc::ClosesGate(*block_) &&
           Unhindered() && process_->taken_watch.on();
  }

  // By what a launch finds the queue (MapKey); 0: by nothing any more.
  uint64_t name() const { return name_.load(std::memory_order_acquire); }
  void SetName(uint64_t name) { name_.store(name, std::memory_order_release); }

  // ---- progress ----
  uint64_t submitted() const { return ipc::ReadSubmitted(*block_); }
  uint64_t retired() const { return ipc::ReadRetired(*block_); }
  uint64_t issued() const {
    // Bounded by submitted(), because a launch that began on the slot's former queue may be counted here.
    return std::min(issued_.load(std::memory_order_acquire), submitted());
  }
  bool Idle() const { return retired() >= submitted(); }
  // True if a launch is in progress. Then the queue is not idle, and a thread may be in the driver.
  bool Launching() const { return issued_.load(std::memory_order_acquire) < submitted(); }
  // True if the driver may accept no more launches until some commands have finished. Then a thread that asks
  // it about the queue may block.
  bool MayBeFull() const { return submitted() - retired() > kSafelyUnreported; }

  // Commands up to `number` have finished. Lock-free, from any thread.
  void RetiredUpTo(uint64_t number);
  // The scheduler charges the queue for what it does after a hold.
  bool OverrunsCharged() const { return (flags() & ipc::kFlagChargesOverruns) != 0; }
  // The queue is held, and others wait for the end of what the device still does of it.
  bool DrainIsAwaited() const { return OverrunsCharged() && Held(); }
  // That harms nobody.
  bool KeepsBusy() const {
    return (flags() & (ipc::kFlagChargesOverruns | ipc::kFlagStopsSoon)) == ipc::kFlagChargesOverruns;
  }
  // The queue is held, and the device has nothing more of it: notifies the scheduler.
  void NotifyDrained();
  // The scheduler asked for the queue's progress: the next progress is reported.
  void ReportNextProgress(bool report) { report_progress_.store(report, std::memory_order_seq_cst); }

  // The driver has reported the marker behind command `number`.
  void MarkerReached(uint64_t number) {
    markers.Reached(Now(), [this, number] { RetiredUpTo(number); });
  }

  // ---- holds and suspensions ----
  uint32_t flags() const { return process_->scheduled() ? raw_flags() & ~ipc::kFlagCounted : 0; }
  bool Held() const {
    if (destroying() || process_->shut_down()) return false;
    // What a scheduler wrote after it was left does not hold the queue.
    return suspended() || (ipc::ClosesGate(*block_) && process_->scheduled());
  }
  // True if the queue is open, whatever the scheduler and the program say.
  bool ForcedOpen() const { return process_->forced_open() || destroying() || process_->shut_down(); }
  // True if the program has suspended the queue, and it is not opened for good.
  bool HeldByProgram() const { return suspended() && !destroying() && !process_->shut_down(); }
  // True if the program has suspended the queue.
  bool suspended() const { return suspended_.load(std::memory_order_seq_cst); }
  void SetSuspended(bool suspended) { suspended_.store(suspended, std::memory_order_seq_cst); }

  // ---- the end of a queue ----

  // True if the program has released the queue, and its enqueued commands still run.
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  // Returns true if the value has changed.
  bool SetDraining(bool draining) {
    return draining_.exchange(draining, std::memory_order_acq_rel) != draining;
  }
  // True if the driver's context is being destroyed: the driver must not be asked about the queue any more.
  bool context_goes() const { return context_goes_.load(std::memory_order_acquire); }
  void SetContextGoes(bool goes) { context_goes_.store(goes, std::memory_order_seq_cst); }
  // True if the queue is being destroyed: nothing holds it any more.
  bool destroying() const { return destroying_.load(std::memory_order_acquire); }
  bool SetDestroying(bool destroying) {
    return destroying_.exchange(destroying, std::memory_order_acq_rel) != destroying;
  }

  // ---- description ----
  uint32_t index() const { return index_; }
  XGating gating() const { return gating_.load(std::memory_order_relaxed); }
  bool has_device_gates() const { return gating() == kGatingDeviceGates; }
  // True if this process knows when the device has nothing more of the queue, while it is held.
  bool ReportsOverruns() const { return gating() != kGatingCallerWaits || polls_markers_; }
  XPreemptLevel level() const { return level_.load(std::memory_order_relaxed); }
  void SetLevel(XPreemptLevel level) {
    level_.store(level, std::memory_order_relaxed);
    quiet.End();
  }
  LaunchConfig config() const {
    return {threshold_.load(std::memory_order_relaxed), batch_size_.load(std::memory_order_relaxed)};
  }
  void SetConfig(const LaunchConfig& config) {
    threshold_.store(config.threshold, std::memory_order_relaxed);
    batch_size_.store(config.batch_size, std::memory_order_relaxed);
    quiet.End();
  }
  ipc::ControlBlock& block() const { return *block_; }
  const ProcessState& process() const { return *process_; }
  Signals& signals() const { return *signals_; }
  TimePoint Now() const { return clock_(); }
  Clock clock() const { return clock_; }
  Clock rough_clock() const { return rough_clock_; }

  void ResetAfterFork();

  QuietSpan quiet;  // set by flow control
  Waiters waiters;
  Markers markers;  // of host gates and caller waits

 private:
  // A driver's stream has a fixed number of entries (the smallest known: 1,020). When they are full, a launch
  // blocks until one is free. Gates and reports take entries as well, so streams were full with 700 commands
  // and more. With up to this many, no stream is full.
  static constexpr uint64_t kSafelyUnreported = 600;

  // If `number` is the newest command, counts the end of the burst and notifies the scheduler, once each, as
  // far as its flags say. The device may have reported this before, but its report does not ring the
  // doorbell.
  bool NotifyIdle(uint64_t number);
  void EndBurst();

  Signals* signals_ = nullptr;
  Clock clock_ = nullptr;
  Clock rough_clock_ = nullptr;
  uint32_t index_ = 0;
  bool polls_markers_ = false;
  std::atomic<XGating> gating_{kGatingCallerWaits};
  std::atomic<XPreemptLevel> level_{kPreemptLevelUnknown};
  std::atomic<int64_t> threshold_{0};
  std::atomic<int64_t> batch_size_{0};
  std::atomic<uint64_t> notified_idle_{0};    // the newest command when the scheduler was last notified
  std::atomic<bool> report_progress_{false};  // the scheduler asked, and there was no new progress yet
  std::atomic<bool> draining_{false};
  std::atomic<bool> context_goes_{false};
  std::atomic<bool> destroying_{false};
};

}  // namespace xsched::preempt
