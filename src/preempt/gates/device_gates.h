// Device-side gates: the device itself waits there and reads the control block. gate_spacing.h decides where
// they go, and this class calls the driver.
#pragma once

#include <atomic>

#include "preempt/gates/flow_control.h"
#include "preempt/gates/gate_spacing.h"

namespace xsched::preempt {

class DeviceGates final : public FlowControl {
 public:
  explicit DeviceGates(FlowState& queue) : FlowControl(queue) {}

  bool BeforeLaunch(uint64_t number, uint32_t flags) override;
  void AfterLaunch(uint64_t number) override;
  bool Advance() override { return true; }  // the device does
  void MakePausable() override;
  bool KeepsStill() const override { return queue_.suspended(); }
  void RequestProgress() override;
  bool AnswerIsNear() override;
  void OnQuery() override;
  bool OverrunIsPolled() const override { return queue_.DrainIsAwaited() && !DrainIsTold(); }
  void PollOverrun() override;
  bool DeviceAtWork() const override;
  void AskContext() override;
  void NoMoreReports() override;
  void AppendLastReport() override;
  bool MayLaunch(uint64_t number) const override;
  bool WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) override;
  void ResetAfterFork() override { spacing_.ResetAfterFork(); }

 private:
  void Reset() override;
  // For a report.
  XControlWords Words() const;
  // For a gate. `pausable`: it also waits for suspensions by the program. `telling`: it tells that it is
  // passed.
  XControlWords Words(bool pausable, bool telling) const;
  // The last command that is not behind a closed gate.
  uint64_t OpenEnd() const;
  // Launch `number` returns, and does not count as issued yet. The driver has all commands up to the returned
  // one. 0: it may get an earlier one later, from another thread.
  uint64_t GivenWith(uint64_t number) const;
  // Puts a report behind everything that was launched. False: this thread cannot, or the driver refused it.
  bool AppendReport();
  // True: if nothing is launched, this process does not get to know any more how far the device is.
  bool NothingIsToCome() const;

  GateSpacing spacing_;
  std::atomic<bool> gates_failed_{false};
  std::atomic<bool> pausable_{false};  // the program has the queue's handle, so gates also read `pause`
  // The number of issued commands when the scheduler last asked, if a launch was waiting for room then; else
  // 0.
  std::atomic<uint64_t> issued_when_full_{0};
  // Used by the thread that calls the driver: what it saw when it last checked a queue that may be full.
  uint64_t seen_submitted_ = 0;
  TimePoint seen_at_{};
};

}  // namespace xsched::preempt
