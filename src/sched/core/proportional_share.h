// Shares of a device's time: one claimant (a queue, or a process with all of its queues) runs at a time, and
// each ready one gets time in proportion to its weight. The base of the policies that differ in weights only.
//
// Stride scheduling. A claimant's pass is the service it has received per unit of weight; the one with the
// lowest pass runs for a slice. The device's clock is the lowest pass of those that are ready. While nobody
// is ready it stands still.
//
// When a claimant becomes ready, its pass is clamped between the clock and one timeslice's worth above that,
// or more if it was further ahead of the others when it was ready last. So idle time is no credit, time that
// it used alone is no debt, and a short pause does not cancel a debt: neither that of a command that ran on
// for many timeslices after a hold.
#pragma once

#include <span>

#include "sched/core/policy.h"

namespace xsched::sched {

// As of the last decision in which the claimant was ready.
struct ShareState {
  double pass;
  double ahead;      // how many seconds of service it was ahead of the lowest pass
  Duration service;  // what it had received
  bool held;
};

struct ShareClock {
  double lowest;  // pass, as of the last decision
};

// Slices in proportion to the processes' weights. Where slices cannot have that proportion, the policy holds
// all but one claimant, and only that one's process is on the device.
using WeightOfProcess = double (*)(const ProcessView& process);
Division DivideInProportion(std::span<ProcessView> processes, WeightOfProcess weight_of);

class ProportionalShare : public PolicyWithState<ShareState, NoState, ShareClock> {
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
  double Pass(const QueueView& claimant) const;
  QueueView& Lowest(std::span<QueueView> ready) const;
  void LevelNewcomers(const DeviceView& device) const;
  void Remember(const DeviceView& device) const;
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
