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
  bool WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) override;
  void ResetAfterFork() override { chain_.ResetAfterFork(); }

 private:
  void Reset() override { chain_.Reset(); }
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
};

}  // namespace xsched::preempt
