// The preemptible queue over one hardware queue.
//
// Commands go straight to the driver on the caller's thread. They are controlled by flow control
// (gates/flow_control.h), levels 2 and 3 (suspension.h), and the control block that the scheduler writes
// (ipc/control_block.h). Only commands of XQueueSubmit are launched later, by a worker (submit_worker.h).
//
// XQueues are in the slots of a table (xqueue_table.h). They are reused and never freed: with a stale
// pointer, a launching thread at worst makes a count wrong. A thread that needs the queue to stay has a pin.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "hal/contract.h"
#include "ipc/control_block.h"
#include "preempt/gates/flow_control.h"
#include "preempt/gates/flow_state.h"
#include "preempt/queue/driver_requests.h"
#include "preempt/queue/hw_queue.h"
#include "preempt/queue/process_level.h"
#include "preempt/queue/siblings.h"
#include "preempt/queue/submit_worker.h"
#include "preempt/queue/suspension.h"
#include "sched/core/types.h"

namespace xsched::preempt {

struct XQueueOptions {
  XPreemptLevel level = kPreemptLevelBlock;
  LaunchConfig config;
  sched::Hints hints;
  bool blocking_submit = false;
  bool pausable = true;  // the program may suspend it
  // The wanted time from a hold until the queue stops. The first is for gates that the host opens and for
  // waiting callers, the second for device-side gates.
  Duration host_gate_latency = kHostGateLatency;
  Duration device_gate_latency = kDeviceGateLatency;
};

// The parts of the process that queues use. They outlive the queues.
struct XQueueEnvironment {
  ProcessState* process;
  Signals* signals;
  Siblings* siblings;
  DriverRequests* driver;
  ProcessLevel* process_level;
  HwQueues* hw_queues;
  HwCommands* hw_commands;
  Clock clock;
  Clock rough_clock;
};

// The memory of the control blocks.
struct SharedMemory {
  void* memory = nullptr;
  size_t size = 0;
};

class XQueue {
 public:
  constexpr XQueue() = default;

  // ---- the life of the queue in this slot; called by the table ----
  struct Start {
    const XQueueEnvironment* environment;
    Ref<HwQueue> hwq;
    uint32_t index;
    ipc::ControlBlock* block;  // reset
    SharedMemory shared_memory;
    XQueueOptions options;
  };
  // False: out of memory.
  bool Begin(const Start& start);
  // From now on it can be found by this handle; 0: not any more.
  void SetHandle(XQueueHandle handle);
  // Nobody uses it any more: releases the HwQueue.
  void End();

  // ---- its parts ----
  // The counters of its commands, and whether it is held.
  FlowState& state() { return state_; }
  const FlowState& state() const { return state_; }
  // Its gates, and waiting for its commands. REQUIRES: Begin has succeeded in this slot.
  FlowControl& flow() { return *flow_; }
  const FlowControl& flow() const { return *flow_; }
  // The commands of XQueueSubmit.
  SubmitWorker& worker() { return worker_; }

  // ---- the hot path; see launch.h ----
  [[gnu::always_inline]] uint64_t LaunchBegin() {
    const uint64_t number = state_.CountLaunch();
    const uint32_t flags = state_.raw_flags();
    if (flags == 0 ? state_.Unhindered() : state_.Quiet(number, flags)) [[likely]]
      return number;
    return LaunchBeginScheduled(number, flags);
  }
  // The same for a command that takes no time of the device: it is counted and marked, and never waits.
  XSCHED_PRIVATE uint64_t LaunchBeginPassing();
  [[gnu::always_inline]] void LaunchEnd(uint64_t number, bool launched) {
    if (!launched || ((state_.raw_flags() & ipc::kFlagTracked) != 0 && !state_.quiet.Has(number)))
        [[unlikely]]
      LaunchEndScheduled(number, launched);
    state_.CountIssued();
  }

  // ---- progress ----
  uint64_t submitted() const { return state_.submitted(); }
  uint64_t issued() const { return state_.issued(); }
  uint64_t retired() const { return state_.retired(); }
  bool Idle() const { return state_.Idle(); }
  // Commands up to `number` have finished. Lock-free; from any thread.
  void RetiredUpTo(uint64_t number) { state_.RetiredUpTo(number); }
  // Requests progress on the thread that calls drivers (driver_caller.h): only if the answer can come.
  void AskDriver();
  // True if that thread must call PollOverrun again and again: others wait for the end of what the device
  // still does of the held queue.
  bool OverrunIsPolled() const { return flow_->OverrunIsPolled() && !suspension_.Stopped(); }
  void PollOverrun();
  bool HasClosedGates() const { return state_.closed_gates.load(std::memory_order_acquire) != 0; }
  // True if the device may still read or write the control block. Then the slot is not free, even if the
  // queue is destroyed.
  bool DeviceAtWork() const { return flow_ != nullptr && flow_->DeviceAtWork(); }
  // The program launches nothing more. Makes sure that the end of the work becomes known. True if there is
  // work behind a gate, or work that other queues are scheduled against.
  bool MarkLastWork();
  // True if some of that work has not finished. What will never be reported does not count.
  bool HasLastWork() const {
    return HasClosedGates() || DeviceAtWork() ||
           (state_.flags() != 0 && !Idle() && state_.markers.UnderWay());
  }

  // ---- control ----
  bool Held() const { return state_.Held(); }
  // Acts on changes: gates, levels 2 and 3, waiters. Called by the agent, and by the thread that resumes the
  // queue. Questions to the driver are left to the thread that calls drivers.
  struct Left {
    bool gates = false;    // the driver has not opened a gate, or was not to
    bool stopped = false;  // it should run again, and does not yet
    bool anything() const { return gates || stopped; }
  };
  // `gates`: whether to open gates, which may block in some drivers.
  enum class Gates { kOpen, kLeave };
  Left Attend(Gates gates = Gates::kOpen);
  // Acts only on levels 2 and 3. False: it should run again, and does not yet.
  bool ApplyLevels() { return suspension_.Apply(); }
  // Ends it: its last user has released it.
  void Finish() { environment_.siblings->Finish(index()); }
  void Suspend(bool suspended);  // by the program itself
  bool suspended() const { return state_.suspended(); }
  // Lets the running command continue. Gates hold the queue as before.
  void LiftHardStop();

  // Waits until all commands that are not held have finished. May block for as long as the device takes.
  // False: it cannot be known now.
  bool WaitInFlight();

  // ---- description ----
  uint32_t index() const { return state_.index(); }
  XQueueHandle handle() const { return handle_.load(std::memory_order_acquire); }
  XQueueHandle id() const { return id_; }  // its present or former handle
  HwQueue& hwq() const { return *hwq_; }
  bool has_hwq() const { return static_cast<bool>(hwq_); }
  XPreemptLevel level() const { return state_.level(); }
  void SetLevel(XPreemptLevel level);
  LaunchConfig config() const { return state_.config(); }
  void SetConfig(const LaunchConfig& config);
  sched::Hints hints() const;
  void SetHints(const sched::Hints& hints);
  ipc::ControlBlock& block() const { return state_.block(); }
  bool blocking_submit() const { return blocking_submit_; }

  void ResetAfterFork();

 private:
  XSCHED_PRIVATE uint64_t LaunchBeginScheduled(uint64_t number, uint32_t flags);
  // Notifies the scheduler, and puts what is due in front of the command. True: the command must wait.
  bool Announce(uint64_t number, uint32_t flags);
  XSCHED_PRIVATE void LaunchEndScheduled(uint64_t number, bool launched);
  void AnswerQuery();
  // As FlowControl::Advance. Where that may block, this thread may leave it to another one.
  bool Advance();
  // True: everything is given back. False: the agent's thread will do it.
  bool SeeGivenBack(bool going_on);

  FlowState state_;
  FlowControl* flow_ = nullptr;  // one of flows_
  XQueueEnvironment environment_{};
  Suspension suspension_;
  std::atomic<uint32_t> answered_query_{0};
  std::atomic<uint32_t> stopped_query_{0};  // the last question that found the queue stopped

  // By kind of gating. Made when the slot first has a queue of that kind.
  FlowControl* flows_[kGatingDeviceGates + 1] = {};

  Ref<HwQueue> hwq_;
  std::atomic<XQueueHandle> handle_{0};  // 0: not live
  XQueueHandle id_ = 0;
  bool blocking_submit_ = false;

  // All zero until a queue is made here, so that the array of slots takes no room in the library's file.
  mutable Mutex<LockRank::kHints> hints_mutex_;
  sched::Hints hints_ GUARDED_BY(hints_mutex_) =
      std::bit_cast<sched::Hints>(std::array<std::byte, sizeof(sched::Hints)>{});

  SubmitWorker worker_;
};

}  // namespace xsched::preempt
