// Completely fair scheduler: one queue runs at a time, and each ready queue gets time in proportion to a
// weight that grows by a factor of 1.2 with each step of its priority.
//
// For programs that should all get on, some faster than others: unlike under HPF, none starves. A difference
// of 4 in priority about doubles a queue's share.
//
// It fails where latency counts: a task waits for its turn, up to a round of time slices.
#include "sched/core/proportional_share.h"

namespace xsched::sched::cfs {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyCompletelyFairScheduler,
    .name = "CFS",
    .summary = "completely fair scheduler: shares that grow with the priority, one queue at a time",
    .hints = {.priority = true, .timeslice = true},
    .charges_overruns = true,
    .keeps_busy = true,
};

constexpr double kFactor = 1.2;

// kFactor to the power of `priority`; 0 for PRIORITY_NO_EXECUTE.
double WeightOfPriority(Priority priority) {
  if (priority <= PRIORITY_NO_EXECUTE) return 0;
  double weight = 1;
  double power = kFactor;
  for (int bits = priority < 0 ? -priority : priority; bits != 0; bits /= 2, power *= power) {
    if (bits % 2 != 0) weight *= power;
  }
  return priority < 0 ? 1 / weight : weight;
}

class CompletelyFair final : public ProportionalShare {
 public:
  using ProportionalShare::ProportionalShare;

  // Of the queue's own priority: to be waited for makes no share larger. The waiting time of others is
  // bounded, because every queue gets on.
  double WeightOf(const QueueView& queue) const override { return WeightOfPriority(queue.hints.priority); }

  bool CanHold(const Hints&, const Hints& rival) const override {
    return rival.priority > PRIORITY_NO_EXECUTE;
  }

  Division Divide(std::span<ProcessView> processes) const override {
    auto weight = [](const ProcessView& process) { return WeightOfPriority(process.priority); };
    return DivideInProportion(processes, weight);
  }
};

constinit const CompletelyFair policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::cfs
