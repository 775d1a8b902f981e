// The state of one queue that its launching threads, its gates, the device and the scheduler share: how many
// commands were submitted, issued and retired, whether the queue is held, and who is to know when it moves.
//
//   submitted   launches that have begun
//   issued      launches that have returned from the driver: a count, not a prefix, for launches of several
//               threads may return out of order
//   retired     commands that are known to have finished, in order
//
// Part of a queue's slot: all zero until Begin, and used again, never freed. Thread-safe but for Begin.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "hal/contract.h"
#include "ipc/control_block.h"
#include "preempt/gates/launch_config.h"
#include "preempt/gates/process_state.h"
#include "preempt/gates/signals.h"
#include "preempt/gates/waiters.h"
#include "xsched/types.h"

namespace xsched::preempt {

using Clock = TimePoint (*)();

class QueueState {
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
  };

  constexpr QueueState() = default;
  // The slot's next queue. REQUIRES: no marker of the last one is on its way.
  void Begin(const Start& start);

  // ---- the hot path ----
  // Counts a launch that begins; returns its number: 1, 2, …
  uint64_t CountLaunch() {
    // seq_cst, against RetiredUpTo: either we see that the queue was idle, or it sees our command.
    return block_->submitted.fetch_add(1, std::memory_order_seq_cst) + 1;
  }
  // It has returned from the driver. Release: what the driver has taken comes before it.
  void CountIssued() { issued_.fetch_add(1, std::memory_order_release); }
  // What the scheduler has set; may be a former one's words.
  uint32_t raw_flags() const { return block_->flags.load(std::memory_order_acquire); }
  // Nothing of this process stands in the way of a launch.
  bool Unhindered() const {
    return !suspended() && closed_gates.load(std::memory_order_acquire) == 0 &&
           !self_gated.load(std::memory_order_relaxed) && process_->hard_stops() == 0;
  }

  // ---- progress ----
  uint64_t submitted() const { return block_->submitted.load(std::memory_order_seq_cst); }
  uint64_t retired() const { return block_->retired.load(std::memory_order_seq_cst); }
  uint64_t issued() const {
    // Never more than there are: a launch that began on the queue which this slot had before ends here.
    return std::min(issued_.load(std::memory_order_acquire), submitted());
  }
  bool Idle() const { return retired() >= submitted(); }
  // A launch is under way, so that the queue is not idle; in the driver, perhaps.
  bool Launching() const { return issued_.load(std::memory_order_acquire) < submitted(); }
  // The driver may take no more launches until some have finished: a thread that asks it about the queue then
  // may block.
  bool MayBeFull() const { return submitted() - retired() > kSafelyUnreported; }

  // Commands up to `number` have finished. Lock-free, from any thread.
  void RetiredUpTo(uint64_t number);
  // The scheduler asked how far the queue is: the next progress is reported.
  void ReportNextProgress(bool report) { report_progress_.store(report, std::memory_order_seq_cst); }

  // ---- markers (host gates, caller waits) ----
  // Names this queue's command `number` to the driver.
  uint64_t TicketFor(uint64_t number) const { return uint64_t{index_} << kNumberBits | number; }
  static uint32_t IndexOf(uint64_t ticket) { return static_cast<uint32_t>(ticket >> kNumberBits); }
  static uint64_t NumberOf(uint64_t ticket) { return ticket & ((uint64_t{1} << kNumberBits) - 1); }
  void CountMarker() { markers_.fetch_add(1, std::memory_order_relaxed); }
  void ForgetMarker() { markers_.fetch_sub(1, std::memory_order_relaxed); }
  bool MarkersUnderWay() const { return markers_.load(std::memory_order_acquire) != 0; }
  void MarkerReached(uint64_t number);
  // When a marker last showed progress.
  TimePoint retired_at() const { return TimePoint(Duration(retired_at_ns_.load(std::memory_order_relaxed))); }

  // ---- who holds it ----
  uint32_t flags() const { return process_->scheduled() ? raw_flags() : 0; }
  bool Held() const {
    if (destroying() || process_->shut_down()) return false;
    // A word that a scheduler wrote when it was in charge no longer holds nobody.
    return suspended() ||
           (block_->gate.load(std::memory_order_acquire) == ipc::kGateHold && process_->scheduled());
  }
  // Is everything open, whatever the scheduler says and the program has suspended?
  bool ForcedOpen() const { return process_->forced_open() || destroying() || process_->shut_down(); }
  // Suspended by the program itself.
  bool suspended() const { return suspended_.load(std::memory_order_acquire); }
  void SetSuspended(bool suspended) { suspended_.store(suspended, std::memory_order_seq_cst); }

  // ---- the end of a queue ----
  // The program has let it go; what is enqueued still runs.
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  // True: it was not draining, or was, and is no more.
  bool SetDraining(bool draining) {
    return draining_.exchange(draining, std::memory_order_acq_rel) != draining;
  }
  // Nothing holds it any more.
  bool destroying() const { return destroying_.load(std::memory_order_acquire); }
  bool SetDestroying(bool destroying) {
    return destroying_.exchange(destroying, std::memory_order_acq_rel) != destroying;
  }

  // ---- description ----
  uint32_t index() const { return index_; }
  XGating gating() const { return gating_.load(std::memory_order_relaxed); }
  bool has_device_gates() const { return gating() == kGatingDeviceGates; }
  XPreemptLevel level() const { return level_.load(std::memory_order_relaxed); }
  void SetLevel(XPreemptLevel level) { level_.store(level, std::memory_order_relaxed); }
  LaunchConfig config() const {
    return {threshold_.load(std::memory_order_relaxed), batch_size_.load(std::memory_order_relaxed)};
  }
  void SetConfig(const LaunchConfig& config) {
    threshold_.store(config.threshold, std::memory_order_relaxed);
    batch_size_.store(config.batch_size, std::memory_order_relaxed);
  }
  ipc::ControlBlock& block() const { return *block_; }
  const ProcessState& process() const { return *process_; }
  Signals& signals() const { return *signals_; }
  TimePoint Now() const { return clock_(); }

  void ResetAfterFork();

  // Closed gates of the host, kept by GateChain.
  std::atomic<uint32_t> closed_gates{0};
  // The queue can be stopped soon, though no scheduler has asked for that. Set by flow control.
  std::atomic<bool> self_gated{false};
  Waiters waiters;

 private:
  // 2^48 commands are 8 years at one per microsecond.
  static constexpr int kNumberBits = 48;
  // A stream of CUDA takes 1,020 entries; then a launch blocks until one has gone. Gates and reports take
  // entries, too, so streams were found full with 700 commands and more. With up to so many, none is full.
  static constexpr uint64_t kSafelyUnreported = 600;

  // If `number` is the newest command: tells the scheduler, once, that the queue is idle. The device may have
  // reported that before, which rings no bell.
  bool TellIdle(uint64_t number);

  // Read on every launch.
  ipc::ControlBlock* block_ = nullptr;
  const ProcessState* process_ = nullptr;
  std::atomic<bool> suspended_{false};
  std::atomic<uint64_t> issued_{0};

  Signals* signals_ = nullptr;
  Clock clock_ = nullptr;
  uint32_t index_ = 0;
  std::atomic<XGating> gating_{kGatingCallerWaits};
  std::atomic<XPreemptLevel> level_{kPreemptLevelUnknown};
  std::atomic<int64_t> threshold_{0};
  std::atomic<int64_t> batch_size_{0};
  std::atomic<uint32_t> markers_{0};  // on their way
  std::atomic<int64_t> retired_at_ns_{0};
  std::atomic<uint64_t> told_idle_{0};        // the newest command, when the scheduler was last told so
  std::atomic<bool> report_progress_{false};  // the scheduler asked, and has not been told anything new yet
  std::atomic<bool> draining_{false};
  std::atomic<bool> destroying_{false};
};

}  // namespace xsched::preempt
