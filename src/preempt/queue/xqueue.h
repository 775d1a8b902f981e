// The preemptible queue over one hardware queue.
//
// Commands go straight to the driver on the caller's thread; control comes from what is put around them:
// flow control (gates/flow_control.h), levels 2 and 3 (suspension.h), the control block that the scheduler
// writes (ipc/control_block.h), and, for commands submitted through XQueueSubmit only, a worker that launches
// them later (submit_worker.h).
//
// XQueues live in the slots of a table (xqueue_table.h) and are used again, never freed: a stale pointer in a
// launching thread is at worst a wrong count. What needs a queue to stay holds a pin.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "hal/contract.h"
#include "ipc/control_block.h"
#include "preempt/gates/flow_control.h"
#include "preempt/gates/queue_state.h"
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
  // From a hold to the queue's stop, wanted: where the host opens gates or the caller waits, and where the
  // device waits by itself.
  Duration host_gate_latency = std::chrono::microseconds(2000);
  Duration device_gate_latency = std::chrono::microseconds(50);
};

// What queues use of their process. All of it outlives them.
struct XQueueEnvironment {
  ProcessState* process;
  Signals* signals;
  Siblings* siblings;
  DriverRequests* driver;
  ProcessLevel* process_level;
  Clock clock;
};

// Where the control blocks are.
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
  // From now on others find it by its handle; 0: no more.
  void SetHandle(XQueueHandle handle);
  // Nobody uses it any more: lets the HwQueue go.
  void End();
  QueueState& state() { return state_; }
  const QueueState& state() const { return state_; }

  // ---- the hot path; see launch.h ----
  uint64_t LaunchBegin() {
    const uint64_t number = state_.CountLaunch();
    const uint32_t flags = state_.raw_flags();
    if (flags == 0 && state_.Unhindered()) [[likely]]
      return number;
    return LaunchBeginScheduled(number, flags);
  }
  void LaunchEnd(uint64_t number, bool launched);

  // ---- progress ----
  uint64_t submitted() const { return state_.submitted(); }
  uint64_t issued() const { return state_.issued(); }
  uint64_t retired() const { return state_.retired(); }
  bool Idle() const { return state_.Idle(); }
  bool Launching() const { return state_.Launching(); }
  bool MayBeFull() const { return state_.MayBeFull(); }
  // Commands up to `number` have finished. Lock-free; from any thread.
  void RetiredUpTo(uint64_t number) { state_.RetiredUpTo(number); }
  // A marker has been reached (HwQueueRetired).
  void MarkerReached(uint64_t number) { state_.MarkerReached(number); }
  // Asks the driver whether all has finished. May block where MayBeFull.
  void AskDevice() { flow_->AskDevice(); }
  // Finds out how far the device is, at once or when a marker is reached. Calls the driver, which may block.
  void RequestProgress() { flow_->RequestProgress(); }
  // The same for the thread that asks for everybody (driver_caller.h): only where the answer can come.
  void AskDriver();
  // Puts a marker behind what is enqueued, unless one is there. Called by the launching thread.
  void MarkProgress() { flow_->MarkProgress(); }
  bool HasClosedGates() const { return state_.closed_gates.load(std::memory_order_acquire) != 0; }
  // Will the device still look at the control block, or write to it? Then the slot is not free, even when the
  // queue is gone.
  bool DeviceAtWork() const { return flow_ != nullptr && flow_->DeviceAtWork(); }
  // Enqueues a last report, after which the device has nothing to do with the control block any more. Called
  // by a thread that may launch.
  void AppendLastReport() { flow_->AppendLastReport(); }

  // ---- control ----
  bool Held() const { return state_.Held(); }
  bool ForcedOpen() const { return state_.ForcedOpen(); }
  // Acts on what has changed: gates, levels 2 and 3, waiters. Called by the agent, and by the thread that
  // resumes the queue. What needs an answer of the driver is left to the thread for that.
  struct Left {
    bool gates = false;    // another thread opens gates: more may be due
    bool stopped = false;  // it should go on, and does not yet
  };
  Left Attend(IfBusy if_busy);
  // … levels 2 and 3 alone. False: it should go on, and does not yet.
  bool ApplyLevels() { return suspension_.Apply(); }
  void Suspend(bool suspended);  // by the program itself
  bool suspended() const { return state_.suspended(); }
  // The program may suspend it by itself, at any time.
  void MakePausable() { flow_->MakePausable(); }
  // Nothing more of it starts for now, and nobody makes it start without telling this process.
  bool KeepsStill() const { return flow_->KeepsStill(); }
  // Stops the running command no longer; gates hold the queue as before.
  void LiftHardStop();

  // ---- waiting; each may block for as long as the device takes ----
  bool MayLaunch(uint64_t number) const { return flow_->MayLaunch(number); }
  void WaitUntilMayLaunch(uint64_t number) { flow_->WaitUntilMayLaunch(number); }
  void WaitRetired(uint64_t number) { flow_->WaitRetired(number); }
  void WaitInFlight();  // what is not held has finished
  void NotifyWaiters() { state_.waiters.Notify(); }

  // ---- description ----
  uint32_t index() const { return state_.index(); }
  XQueueHandle handle() const { return handle_.load(std::memory_order_acquire); }
  XQueueHandle id() const { return id_; }  // the handle that it has or had
  HwQueue& hwq() const { return *hwq_; }
  bool has_hwq() const { return static_cast<bool>(hwq_); }
  bool has_device_gates() const { return state_.has_device_gates(); }
  XPreemptLevel level() const { return state_.level(); }
  void SetLevel(XPreemptLevel level);
  LaunchConfig config() const { return state_.config(); }
  void SetConfig(const LaunchConfig& config);
  sched::Hints hints() const;
  void SetHints(const sched::Hints& hints);
  ipc::ControlBlock& block() const { return state_.block(); }
  bool blocking_submit() const { return blocking_submit_; }
  SubmitWorker& worker() { return worker_; }

  // How urgent the driver takes the queue for: kept for urgencies.h.
  struct UrgencyTold {
    int noted = 0;                     // of the thread that calls drivers
    std::atomic<uint64_t> version{0};  // of the process's priorities, when the driver was last told
  };
  UrgencyTold& urgency_told() { return urgency_told_; }

  void ResetAfterFork();

 private:
  uint64_t LaunchBeginScheduled(uint64_t number, uint32_t flags);
  void AnswerQuery();
  // True: all is given back. False: the agent's thread will see to it.
  bool SeeGivenBack(bool going_on);

  QueueState state_;
  FlowControl* flow_ = nullptr;  // one of flows_
  XQueueEnvironment environment_{};
  Suspension suspension_;
  std::atomic<uint32_t> answered_query_{0};

  // By kind of gating; made when a queue of that kind first has the slot.
  FlowControl* flows_[kGatingDeviceGates + 1] = {};

  Ref<HwQueue> hwq_;
  std::atomic<XQueueHandle> handle_{0};  // 0: not live
  XQueueHandle id_ = 0;
  bool blocking_submit_ = false;

  // All zero until a queue is made here, so that the array of slots takes no room in the library's file.
  mutable Mutex hints_mutex_;
  sched::Hints hints_{0, 0, 0, 0, 0, 0};
  UrgencyTold urgency_told_;

  SubmitWorker worker_;
};

// The slot that a handle names. REQUIRES: it once was a handle.
inline uint32_t XQueueIndex(XQueueHandle handle) { return static_cast<uint32_t>(handle & 0xffffffu) - 1; }

}  // namespace xsched::preempt
