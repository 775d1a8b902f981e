// Shares of a device's time: one claimant (a queue, or a process with all of its queues) runs at a time, and
// each ready one gets time in proportion to its weight, by stride scheduling (stride.h). The base of the
// policies that differ in weights only.
#pragma once

#include <span>

#include "sched/core/policy.h"
#include "sched/core/stride.h"

namespace xsched::sched {

struct ShareState {
  Stride stride;
  Duration counted;  // service up to the last decision
  bool known;        // the other members are valid
};

// Slices in proportion to the processes' weights. Where slices cannot have that proportion, the policy holds
// all but one claimant, and only that one's process is on the device.
using WeightOfProcess = double (*)(const ProcessView& process);
Division DivideInProportion(std::span<ProcessView> processes, WeightOfProcess weight_of);

class ProportionalShare : public PolicyWithState<ShareState, NoState, StrideClock> {
 public:
  using PolicyWithState::PolicyWithState;

  // In the header: policies may be compiled with run-time type information, which this library does without.
  TimePoint Decide(const DeviceView& device) const final { return LetOneRun(device); }

 protected:
  ~ProportionalShare() = default;

  // 0: it runs only while no claimant with a weight is ready.
  virtual double WeightOf(const QueueView& claimant) const = 0;

 private:
  TimePoint LetOneRun(const DeviceView& device) const;
  void Charge(const QueueView& claimant) const;
  QueueView& Lowest(std::span<QueueView> ready) const;
};

// Shares in proportion to utilization, of queues or of processes (PolicyInfo::granularity).
class UtilizationShare final : public ProportionalShare {
 public:
  using ProportionalShare::ProportionalShare;

  // Without a share, it runs only when nobody with one is ready.
  bool CanHold(const Hints&, const Hints& rival) const override { return rival.utilization > 0; }

  // The device divides its time by slices in proportion.
  Division Divide(std::span<ProcessView> processes) const override {
    auto weight = [](const ProcessView& process) -> double { return process.utilization; };
    return DivideInProportion(processes, weight);
  }

 private:
  double WeightOf(const QueueView& claimant) const override { return claimant.hints.utilization; }
};

}  // namespace xsched::sched
