// Highest priority first: the most urgent ready queues run, equals side by side.
#include <algorithm>

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

  // The most urgent process has the device as soon as it wants it, and keeps it. Where several are equally
  // urgent, they share it as the driver has it.
  Division Divide(std::span<ProcessView> processes) const override {
    Priority highest = processes.front().priority;
    for (const ProcessView& process : processes) highest = std::max(highest, process.priority);
    auto is_highest = [highest](const ProcessView& process) { return process.priority == highest; };
    const auto equals = std::count_if(processes.begin(), processes.end(), is_highest);
    if (equals == std::ssize(processes)) return Division::kNone;
    for (ProcessView& process : processes) {
      process.slice = !is_highest(process) ? kShortestSlice : equals == 1 ? kLongSlice : kDriversSlice;
    }
    return Division::kBesideHolding;
  }

 private:
  static constexpr Duration kLongSlice = std::chrono::milliseconds(100);
};

constinit const HighestPriorityFirst policy;

}  // namespace

const Policy& HighestPriorityFirstPolicy() { return policy; }

}  // namespace xsched::sched
