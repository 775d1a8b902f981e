// For platforms without gates: the launching thread waits while the queue is held or full.
//
// If the driver does not report markers, they are polled (poll_markers): by waiting threads, and by the
// thread that calls the driver.
//
// While a stream captures, its driver does not say how far it is, and a question about a marker would
// invalidate the capture. A capture takes seconds, in which the device has nothing of the stream for most of
// the time. So from its begin, what was launched before counts as finished (*presumed*), and other queues may
// run. If it has not finished, they run beside it: beside what was in flight, and once per capture. For a
// queue that may be held, this is at most the threshold of its launch config. Where the program itself wants
// to know whether commands have finished (XQueueQuery, XQueueWait and others), only the driver's word counts.
#pragma once

#include <atomic>

#include "preempt/gates/flow_control.h"
#include "preempt/gates/gate_chain.h"

namespace xsched::preempt {

class CallerWaits final : public FlowControl, GateDriver {
 public:
  explicit CallerWaits(FlowState& queue) : FlowControl(queue), markers_(queue.closed_gates) {}

  bool BeforeLaunch(uint64_t number, uint32_t flags) override;
  void WaitBeforeLaunch(uint64_t number) override;
  void AfterLaunch(uint64_t number) override;
  void MarkProgress() override;
  bool Advance() override;
  void OnSuspend() override;
  void RequestProgress() override;
  bool OverrunIsPolled() const override;
  void PollOverrun() override { RequestProgress(); }
  void OnCapture() override;
  bool Finished() const override { return FlowControl::Finished() && !Presumes(); }
  uint64_t KnownRetired() const override { return Presumes() ? 0 : queue_.retired(); }
  void WaitUntilMayLaunch(uint64_t number) override;
  bool WaitRetired(uint64_t number) override;
  bool WaitStopped(bool (*)(const void*), const void*) override { return WaitRetired(queue_.issued()); }
  void ResetAfterFork() override { markers_.ResetAfterFork(); }

 private:
  void Reset() override;
  bool AppendGate(uint64_t*) override { return false; }
  bool OpenGate(uint64_t) override { return true; }
  bool AppendMarker(uint64_t upto) override { return FlowControl::AppendMarker(upto); }

  bool MustWaitBefore(uint64_t number);
  // For drivers that report markers.
  void WaitWhileHeldOrFull(uint64_t number);
  void PollMarkers();
  // Lets command `number` and some more pass, until others than the `retired` first ones retire.
  void LetGo(uint64_t number, uint64_t retired);
  bool MayPass(uint64_t number) const;
  // Polls until `done`. While the queue is held, it only waits until `wake`: a stopped queue makes no
  // progress.
  template <typename Done, typename Wake>
  void WaitPolling(Done&& done, Wake&& wake);
  GateChain::Now Now() const;
  // True if commands count as finished, and none after them is known to have finished.
  bool Presumes() const { return presumed_.load(std::memory_order_acquire) == queue_.retired(); }
  // All commands up to `number` are known to have finished.
  void Confirm(uint64_t number);

  GateChain markers_;  // never has a gate
  // The last command that counts as finished without the driver's word.
  std::atomic<uint64_t> presumed_{UINT64_MAX};
  // While exactly so many commands have retired, launches up to that number do not wait for those in flight.
  std::atomic<uint64_t> let_go_at_{UINT64_MAX};
  std::atomic<uint64_t> let_go_upto_{0};
};

}  // namespace xsched::preempt
