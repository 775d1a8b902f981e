// Gates that the host opens. gate_chain.h decides, and this class calls the driver.
#pragma once

#include <atomic>

#include "preempt/gates/flow_control.h"
#include "preempt/gates/gate_chain.h"

namespace xsched::preempt {

class HostGates final : public FlowControl, GateDriver {
 public:
  explicit HostGates(FlowState& queue) : FlowControl(queue), chain_(queue.closed_gates) {}

  bool BeforeLaunch(uint64_t number, uint32_t flags) override;
  bool Advance() override;
  bool GateIsDue() override;
  void OnQuery() override { drained_at_.store(kTellAgain, std::memory_order_relaxed); }
  bool WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) override;
  void ResetAfterFork() override { chain_.ResetAfterFork(); }

 private:
  void Reset() override;
  bool AppendGate(uint64_t* gate) override { return ops().append_gate(hwq(), gate) == kXSchedSuccess; }
  bool OpenGate(uint64_t gate) override { return ops().open_gate(hwq(), gate) == kXSchedSuccess; }
  void Flush() override {
    if (ops().flush != nullptr) ops().flush(hwq());
  }
  bool AppendMarker(uint64_t upto) override { return FlowControl::AppendMarker(upto); }
  GateChain::Now Now() const;
  GateChain::Limits Limits() const;
  void ReportIfDrained();

  GateChain chain_;
  // The last open command when the scheduler was last told that the device has nothing more of the queue. 0
  // is such a number: the first command of all may be behind a gate.
  static constexpr uint64_t kTellAgain = UINT64_MAX;
  std::atomic<uint64_t> drained_at_{kTellAgain};
};

}  // namespace xsched::preempt
