// How the commands of one queue are held back (XGating): host_gates.h, device_gates.h, caller_waits.h.
//
// One object per slot of a queue and kind of gating; it is used again by the slot's next queue of that kind,
// and never freed. Thread-safe but for Begin.
#pragma once

#include <cstdint>

#include "hal/contract.h"
#include "preempt/gates/if_busy.h"
#include "preempt/gates/queue_state.h"

namespace xsched::preempt {

class FlowControl {
 public:
  struct Start {
    const XHwQueueOps* ops;
    void* hwq;
    Duration
        host_gate_latency;  // wanted from hold to stopped, where the host opens gates or the caller waits
    Duration device_gate_latency;  // … where the device opens them
    void* shared_memory;           // the mapping that holds the control block
    size_t shared_memory_size;
  };
  // Null: out of memory.
  static FlowControl* Make(XGating gating, QueueState& queue);

  void Begin(const Start& start);

  // ---- launches; on the launching thread ----
  // Command `number` is about to be enqueued on a queue that is, or may be, held. True: it has to wait in
  // WaitBeforeLaunch, with the queue pinned.
  virtual bool BeforeLaunch(uint64_t number, uint32_t flags) = 0;
  virtual void WaitBeforeLaunch(uint64_t) {}
  // It has been enqueued, on a queue whose progress others wait for.
  virtual void AfterLaunch(uint64_t) {}
  // Sees to it that the progress up to here becomes known.
  virtual void MarkProgress() { RequestProgress(); }

  // ---- control ----
  // Acts on what has retired, and on a hold that has ended. False: another thread opens gates, and the caller
  // did not want to wait for it.
  virtual bool Advance(IfBusy) = 0;
  // The program may suspend the queue, from now on.
  virtual void MakePausable() {}
  // The program is about to suspend it.
  virtual void OnSuspend() {}
  // Nothing more of the queue starts for now, and nobody makes it start without telling this process.
  virtual bool KeepsStill() const { return queue_.Held(); }

  // ---- progress ----
  // Finds out how far the device is, at once or when a marker is reached. Calls the driver, which may block.
  virtual void RequestProgress();
  // May the thread that asks for everybody do so now? It is not to block for good.
  virtual bool AnswerIsNear() { return true; }
  // The scheduler has asked how far the queue is.
  virtual void OnQuery() {}
  // Asks the driver whether all has finished. May block where MayBeFull.
  void AskDevice();
  // Will the device still look at the control block, or write to it?
  virtual bool DeviceAtWork() const { return false; }
  // Enqueues a last report, after which the device has nothing to do with the control block any more. Called
  // by a thread that may launch.
  virtual void AppendLastReport() {}

  // ---- waiting; each may block for as long as the device takes ----
  virtual bool MayLaunch(uint64_t number) const;
  // For the submission worker.
  virtual void WaitUntilMayLaunch(uint64_t number);
  void WaitRetired(uint64_t number);
  // What is not held has finished.
  virtual void WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) = 0;

  virtual void ResetAfterFork() = 0;

 protected:
  explicit FlowControl(QueueState& queue) : queue_(queue) {}
  ~FlowControl() = default;
  virtual void Reset() = 0;

  const XHwQueueOps& ops() const { return *start_.ops; }
  void* hwq() const { return start_.hwq; }
  bool PollsMarkers() const { return ops().poll_markers != nullptr; }
  // Puts a marker behind what is enqueued. False: none will be reached.
  bool AppendMarker(uint64_t upto);

  QueueState& queue_;
  Start start_{};
};

}  // namespace xsched::preempt
