// Highest priority first: the most urgent ready queues run, equals side by side.
#include "sched/policy/policies.h"

namespace xsched::sched {
namespace {

class HighestPriorityFirst final : public Policy {
 public:
  XPolicyType type() const override { return kPolicyHighestPriorityFirst; }

  TimePoint Decide(TimePoint, Duration, std::span<QueueView> ready) const override {
    Priority highest = PRIORITY_NO_EXECUTE;
    for (const QueueView& queue : ready) highest = queue.priority > highest ? queue.priority : highest;
    for (QueueView& queue : ready) queue.run = queue.priority == highest;
    return kNever;
  }

  bool CanHold(const Hints& victim, const Hints& rival) const override {
    return rival.priority > victim.priority;
  }
};

constinit const HighestPriorityFirst policy;

}  // namespace

const Policy& HighestPriorityFirstPolicy() { return policy; }

}  // namespace xsched::sched
