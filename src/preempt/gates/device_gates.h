// Gates at which the device waits by itself (CUDA), by reading the control block: gate_spacing.h decides
// where they go, this asks the driver.
#pragma once

#include <atomic>

#include "preempt/gates/flow_control.h"
#include "preempt/gates/gate_spacing.h"

namespace xsched::preempt {

class DeviceGates final : public FlowControl {
 public:
  explicit DeviceGates(QueueState& queue) : FlowControl(queue) {}

  bool BeforeLaunch(uint64_t number, uint32_t flags) override;
  void AfterLaunch(uint64_t number) override;
  bool Advance(IfBusy) override { return true; }  // the device does
  void MakePausable() override;
  bool KeepsStill() const override { return queue_.suspended(); }
  void RequestProgress() override;
  bool AnswerIsNear() override;
  void OnQuery() override;
  bool DeviceAtWork() const override;
  void AppendLastReport() override;
  bool MayLaunch(uint64_t number) const override;
  void WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) override;
  void ResetAfterFork() override { spacing_.ResetAfterFork(); }

 private:
  void Reset() override;
  // `pausable`: for a gate that holds what the program suspends, too.
  XControlWords Words(bool pausable) const;

  GateSpacing spacing_;
  std::atomic<bool> gates_failed_{false};
  std::atomic<bool> pausable_{false};  // the program has the queue by its handle: gates heed `pause`, too
  // Launches that had ended when the scheduler last asked, if another one was waiting for room then; else 0.
  std::atomic<uint64_t> issued_when_full_{0};
  // Of the thread that asks the driver: what it saw when it last looked at a queue that may be full.
  uint64_t seen_submitted_ = 0;
  TimePoint seen_at_{};
};

}  // namespace xsched::preempt
