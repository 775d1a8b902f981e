// The preemptible queue over one hardware queue.
//
// Commands go straight to the driver on the caller's thread; control comes from what is put around them:
// gates (gate_chain.h), the control block that the scheduler writes (ipc/control_block.h), and, for commands
// submitted through XQueueSubmit only, a worker that launches them later (submit_worker.h).
//
// XQueues live in a fixed array, one per control block of the process's segment, and are used again, never
// freed: a stale pointer in a launching thread is at worst a wrong count. What needs a queue to stay holds a
// Pin.
//
//   free --Create--> live --Destroy, drained--> free
//                      \--DestroyWhenDrained--> draining --drained--> free
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "hal/contract.h"
#include "ipc/control_block.h"
#include "preempt/api/settings.h"
#include "preempt/gates/gate_chain.h"
#include "preempt/gates/inline_gates.h"
#include "preempt/queue/hw_queue.h"
#include "preempt/queue/submit_worker.h"
#include "sched/core/types.h"

namespace xsched::preempt {

struct LaunchConfig {
  int64_t threshold = kDefaultThreshold;
  int64_t batch_size = kDefaultBatchSize;
};

class XQueue {
 public:
  constexpr XQueue() = default;

  // ---- the hot path; see launch.h ----
  uint64_t LaunchBegin();
  void LaunchEnd(uint64_t number, bool launched);

  // ---- progress ----
  // How many commands are in the driver's hands for sure. (They may be others than the first: commands are
  // counted, not told apart.)
  uint64_t Settled() const;
  // Commands up to `number` have finished. Lock-free; from any thread.
  void RetiredUpTo(uint64_t number);
  // A marker has been reached (HwQueueRetired).
  void MarkerReached(uint64_t number);
  bool Idle() const;
  // Gates in line: asks the driver whether all has finished. May block where MayBeFull.
  void AskDevice();
  // Finds out how far the device is, at once or when a marker is reached. Calls the driver, which may block.
  void RequestProgress();
  // The same for the thread that asks for everybody (driver_caller.h): asks where the answer can come only.
  void AskDriver();
  // A launch is under way, so that the queue is not idle; in the driver, perhaps.
  bool Launching() const { return settled_.load(std::memory_order_acquire) < submitted(); }
  // The driver may take no more launches until some have finished: who asks it about the queue then may
  // block.
  bool MayBeFull() const { return submitted() - retired() > kSafelyUnreported; }
  // Puts a marker behind what is enqueued, unless one is there. Called by who launches.
  void MarkProgress();
  bool HasClosedGates() const { return gates_.HasClosed(); }
  // Will the device still look at the control block, or write to it? Then the slot is not free, even when the
  // queue is gone.
  bool DeviceAtWork() const;
  // Enqueues a last report, after which the device has nothing to do with the control block any more. Called
  // by who may launch.
  void AppendLastReport();

  // ---- control ----
  bool Held() const;
  // Whatever the scheduler says and the program has suspended: are gates in line to be open?
  bool ForcedOpen() const;
  // Has ForcedOpen or suspended() changed? Then this tells the device.
  bool TellDevice();
  // Acts on what has changed: gates, levels 2 and 3, waiters. Called by the agent, and by who resumes the
  // queue. What needs an answer of the driver is left to the thread for that (driver_caller.h).
  struct Left {
    bool gates = false;    // another thread opens gates: more may be due
    bool stopped = false;  // it should go on, and does not yet
  };
  Left Attend(GateChain::IfBusy if_busy);
  // … levels 2 and 3 alone. False: it should go on, and does not yet.
  bool ApplyLevels();
  void Suspend(bool suspended);  // by the program itself
  bool suspended() const { return suspended_.load(std::memory_order_acquire); }

  // ---- waiting; each may block for as long as the device takes ----
  bool MayLaunch(uint64_t number) const;
  void WaitUntilMayLaunch(uint64_t number);  // for platforms without gates, and for the submit worker
  void WaitRetired(uint64_t number);
  void WaitInFlight();  // what is not behind a gate has finished
  void NotifyWaiters();

  // ---- description ----
  uint32_t index() const { return index_; }
  XQueueHandle handle() const { return handle_.load(std::memory_order_acquire); }
  XQueueHandle id() const { return id_; }
  HwQueue& hwq() const { return *hwq_; }
  // The device opens them by itself (inline_gates.h).
  bool GatesInLine() const { return gates_in_line_.load(std::memory_order_relaxed); }
  // Nothing more of it starts for now, and nobody makes it start without telling this process.
  bool KeepsStill() const { return GatesInLine() ? suspended() : Held(); }
  XPreemptLevel level() const { return level_.load(std::memory_order_relaxed); }
  LaunchConfig config() const;
  void SetLevel(XPreemptLevel level);
  void SetConfig(const LaunchConfig& config);
  sched::Hints hints() const;
  void SetHints(const sched::Hints& hints);
  // Tells the device how urgent the hints make the queue among those of the program, if it does not know yet.
  // Calls the driver, which may block. False: not now.
  bool TellUrgency();
  // … and lets the HAL know of it, which calls no driver.
  void NoteUrgency();
  // Leaves that to the thread that calls drivers. False: there is nothing to be told.
  bool RequestUrgency();
  ipc::ControlBlock& block() const { return *block_; }
  uint64_t submitted() const { return block_->submitted.load(std::memory_order_seq_cst); }
  uint64_t retired() const { return block_->retired.load(std::memory_order_seq_cst); }
  // The program may suspend it by itself, at any time.
  void MakePausable() {
    pausable_.store(true, std::memory_order_relaxed);
    self_gated_.store(GatesInLine(), std::memory_order_relaxed);
  }
  // Stops the running command no longer; gates hold the queue as before.
  void LiftHardStop();
  bool blocking_submit() const { return blocking_submit_; }
  SubmitWorker& worker() { return worker_; }

 private:
  friend class XQueueTable;

  // A stream of CUDA takes 1,020 entries; then a launch blocks until one has gone. Gates and reports take
  // entries, too, so streams were found full with 700 commands and more. With up to so many, none is full.
  static constexpr uint64_t kSafelyUnreported = 600;

  uint64_t LaunchBeginScheduled(uint64_t number, uint32_t flags);

  // Markers that have to be looked at: xqueue_polled.cc.
  bool PollsMarkers() const { return hwq_->ops.poll_markers != nullptr; }
  void PollMarkers();
  bool MustWaitBefore(uint64_t number);
  void WaitBefore(uint64_t number);
  template <typename Done>
  void WaitPolling(Done&& done);
  void WaitUntilMayLaunchPolling(uint64_t number);

  // Gates in line: xqueue_inline.cc.
  void InlineGateBefore(uint64_t number, uint32_t flags);
  void InlineReportAfter(uint64_t number);
  bool AnswerIsNear();
  void WaitStopped();
  bool StopsProcess() const;
  bool WantsHardStop() const;
  void HardStop();
  bool EndHardStop();
  bool HardStopped() const;
  // `pausable`: for a gate that holds what the program suspends, too.
  XControlWords Words(bool pausable) const;

  // If `number` is the newest command: tells the scheduler, once, that the queue is idle. The device may have
  // reported that before, which rings no bell.
  bool TellIdle(uint64_t number);
  int Urgency() const;
  bool UrgencyIsNews() const;
  void AnswerQuery();
  void CountMove();
  bool Stopped() const;
  bool ApplyDeactivation(bool hold);
  GateChain::Now Now() const;
  GateChain::Limits Limits() const;

  class Driver;  // what gates_ drives
  bool AppendMarker(uint64_t upto);

  // Read on every launch.
  ipc::ControlBlock* block_ = nullptr;
  std::atomic<bool> suspended_{false};
  std::atomic<bool> self_gated_{false};  // can be stopped soon, though no scheduler asked for that
  std::atomic<bool> gates_in_line_{false};
  std::atomic<uint64_t> settled_{0};  // launches that have ended

  std::atomic<uint32_t> markers_{0};       // on their way
  std::atomic<int64_t> retired_at_ns_{0};  // when `retired` last moved by a marker
  std::atomic<uint64_t> told_idle_{0};     // the newest command, when the scheduler was last told so
  std::atomic<uint32_t> answered_query_{0};
  // Launches that had ended when the scheduler last asked, if another one was waiting for room then; else 0.
  std::atomic<uint64_t> settled_when_full_{0};
  std::atomic<bool> report_progress_{false};  // the scheduler asked, and has not been told anything new yet
  GateChain gates_;
  InlineGates inline_gates_;
  std::atomic<bool> gates_failed_{false};
  std::atomic<bool> pausable_{false};  // the program has it by its handle: gates in line heed `pause`, too

  mutable Mutex level_mutex_;  // serialises ApplyLevels
  bool deactivated_ = false;
  bool interrupted_ = false;

  Mutex wait_mutex_;
  Condition wait_condition_;
  std::atomic<uint32_t> waiters_{0};
  // Who launches does not wait for what is in flight, while as many commands have retired. Set when a queue
  // is made here.
  std::atomic<uint64_t> let_go_at_{0};

  // Set once per life of the slot.
  Ref<HwQueue> hwq_;
  uint32_t index_ = 0;
  std::atomic<XQueueHandle> handle_{0};  // 0: not live
  XQueueHandle id_ = 0;                  // the handle it has or had
  bool blocking_submit_ = false;

  // All zero until a queue is made here, so that the array of slots takes no room in the library's file.
  mutable Mutex hints_mutex_;
  sched::Hints hints_{0, 0, 0, 0, 0, 0};
  int urgency_ = 0;  // that the HAL has noted; for the thread that calls drivers
  // The version of the process's priorities that the driver was last told of.
  std::atomic<uint64_t> told_priorities_{0};
  // Of the thread that asks the driver: what it saw when it last looked at a queue that may be full.
  uint64_t seen_submitted_ = 0;
  TimePoint seen_at_{};
  std::atomic<int64_t> threshold_{0};
  std::atomic<int64_t> batch_size_{0};
  std::atomic<XPreemptLevel> level_{kPreemptLevelUnknown};

  SubmitWorker worker_;

  // XQueueTable's, under its lock but for the atomics.
  bool taken_ = false;
  bool nameless_ = false;  // the driver's handle is another queue's by now
  bool retained_ = false;  // the driver's queue is there for us alone
  uint32_t pins_ = 0;
  uint32_t generation_ = 0;
  std::atomic<bool> draining_{false};
  std::atomic<bool> destroying_{false};
};

// The handle of the live queue in slot `index`; 0: none.
XQueueHandle XQueueHandleAt(uint32_t index);
// The slot that a handle names. REQUIRES: it once was a handle.
inline uint32_t XQueueIndex(XQueueHandle handle) { return static_cast<uint32_t>(handle & 0xffffffu) - 1; }

}  // namespace xsched::preempt
