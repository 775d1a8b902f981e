// The interface to the kinds of gating of one queue (XGating): host_gates.h, device_gates.h, caller_waits.h.
//
// There is one object per slot and kind of gating. It is reused by the slot's next queue of that kind, and
// never freed. Thread-safe, except for Begin.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/python_lock.h"
#include "hal/contract.h"
#include "preempt/gates/flow_state.h"

namespace xsched::preempt {

class FlowControl {
 public:
  struct Start {
    const XHwQueueOps* ops;
    void* hwq;
    Duration
        host_gate_latency;  // wanted from hold to stopped, where the host opens gates or the caller waits
    Duration device_gate_latency;  // the same for device-side gates
    void* shared_memory;           // the mapping that holds the control block
    size_t shared_memory_size;
  };
  // Null: out of memory.
  static FlowControl* Make(XGating gating, FlowState& queue);

  void Begin(const Start& start);

  // ---- launches; on the launching thread ----

  // Command `number` is about to be enqueued on a queue that is, or may be, held. True: the caller must pin
  // the queue and call WaitBeforeLaunch.
  virtual bool BeforeLaunch(uint64_t number, uint32_t flags) = 0;
  virtual void WaitBeforeLaunch(uint64_t) {}
  // It has been enqueued, on a queue whose progress others wait for.
  virtual void AfterLaunch(uint64_t) {}
  // Makes sure that the progress up to here becomes known.
  virtual void MarkProgress() { RequestProgress(); }

  // ---- control ----

  // Opens gates as commands have retired or a hold has ended. If another thread is opening some, that one
  // does it. False: call it again later, because the driver has not opened a gate.
  virtual bool Advance() = 0;
  // As Advance, for a thread that must open none. True: Advance would open a gate now.
  virtual bool GateIsDue() { return false; }
  // The program may suspend the queue, from now on.
  virtual void MakePausable() {}
  // The program is about to suspend it.
  virtual void OnSuspend() {}
  // True if nothing more of the queue starts, and if this process is notified before it may.
  virtual bool KeepsStill() const { return queue_.Held(); }

  // ---- progress ----

  // Finds out the device's progress, at once or when a marker is reached. Calls the driver, which may block.
  virtual void RequestProgress();
  // True if the shared thread for driver calls may ask about this queue now. It must not block forever.
  virtual bool AnswerIsNear() { return true; }
  // The scheduler has asked for the queue's progress.
  virtual void OnQuery() { drained_at_.store(kTellAgain, std::memory_order_relaxed); }
  // True if PollOverrun must be called from time to time until the device has nothing more of the held queue:
  // the scheduler waits for that.
  virtual bool OverrunIsPolled() const { return false; }
  virtual void PollOverrun() {}
  // The stream is about to capture, or to join a capture: the driver will not say how far it is. See
  // caller_waits.h.
  virtual void OnCapture() {}
  // True if all that was launched has finished, and not only counts as finished (OnCapture).
  virtual bool Finished() const { return queue_.Idle(); }
  // Commands up to this one are known to have finished.
  virtual uint64_t KnownRetired() const { return queue_.retired(); }
  // Asks the driver whether all has finished. May block where MayBeFull. False: it has not, or it is not
  // known.
  bool AskDevice();
  // True if the device may still read or write the control block.
  virtual bool DeviceAtWork() const { return false; }
  // Asks the driver whether the context of a draining queue has failed.
  virtual void AskContext() {}
  // The device does not report any more: its context has failed or is gone. All commands count as retired.
  virtual void NoMoreReports() {}
  // Enqueues a last report, after which the device does not use the control block any more. If this thread
  // cannot do that, the device stays at work until its context has failed or is gone.
  virtual void AppendLastReport() {}

  // ---- waiting; each may block for as long as the device takes ----
  // For the submission worker: command `number` may leave host memory. The program has not suspended the
  // queue, and few enough are in flight. A scheduler's hold does not count: it stops a launch that has begun
  // (BeforeLaunch), as it does those of other threads, and so the scheduler knows that the queue wants to
  // run.
  virtual bool MayLaunch(uint64_t number) const;
  virtual void WaitUntilMayLaunch(uint64_t number);
  // False: it cannot be known now (XHwQueueOps::synchronize).
  virtual bool WaitRetired(uint64_t number);
  // Waits until all commands that are not held have finished. False: it cannot be known now, likewise.
  virtual bool WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) = 0;

  virtual void ResetAfterFork() = 0;

 protected:
  explicit FlowControl(FlowState& queue) : queue_(queue) {}
  ~FlowControl() = default;
  virtual void Reset() = 0;

  const XHwQueueOps& ops() const { return *start_.ops; }
  void* hwq() const { return start_.hwq; }
  bool PollsMarkers() const { return ops().poll_markers != nullptr; }
  // True if other threads than the launching one must not ask the driver about the queue.
  bool OnlyLauncherAsks() const;
  // Puts a marker behind what is enqueued. False: none will be reached.
  bool AppendMarker(uint64_t upto);
  // Makes sure that a marker is behind all that has been launched. False: none will be reached.
  bool MarkIssued();
  // Waits until `may_launch`, which needs that `held` is false and that few enough commands are in flight.
  template <typename Held, typename Room>
  void AwaitRoom(Held&& held, Room&& may_launch);

  // REQUIRES: the drain is awaited. Tells the scheduler, once for each question, if the device has nothing
  // more up to command `end`, the last one that may run.
  void ReportIfDrained(uint64_t end);
  // True if that was told since the scheduler's last question.
  bool DrainIsTold() const { return drained_at_.load(std::memory_order_relaxed) != kTellAgain; }

  FlowState& queue_;
  Start start_{};

 private:
  std::atomic<uint64_t> marked_{0};  // there is a marker behind this command
  // The last command that might run when the scheduler was last told that the device has nothing more of the
  // queue. 0 is such a number: the first command of all may be behind a gate.
  static constexpr uint64_t kTellAgain = UINT64_MAX;
  std::atomic<uint64_t> drained_at_{kTellAgain};
};

// A held queue may be stopped, and then no marker is reached. So one is put only when the queue may run.
template <typename Held, typename Room>
void FlowControl::AwaitRoom(Held&& held, Room&& may_launch) {
  if (may_launch()) return;
  // Who resumes the queue may be a thread of the same Python program.
  PythonLockReleased released;
  while (!may_launch()) {
    queue_.waiters.Await([&] { return !held() || may_launch(); });
    if (held() || may_launch()) continue;
    if (!MarkIssued()) return;
    queue_.waiters.Await([&] { return held() || may_launch(); });
  }
}

}  // namespace xsched::preempt
