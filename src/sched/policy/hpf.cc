// Highest priority first: the most urgent ready queues run, equals side by side.
//
// For an urgent program beside batch jobs, which are to run in what it leaves. It suits devices that are idle
// for most of the time of those that are urgent.
//
// It fails where the most urgent programs always have work: everybody below them starves. It knows no shares
// either: equals get what the driver gives them.
#include <algorithm>

#include "sched/core/policy.h"

namespace xsched::sched::hpf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyHighestPriorityFirst,
    .name = "HPF",
    .summary = "highest priority first, equals side by side",
    .hints = {.priority = true},
};

class HighestPriorityFirst final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    Priority highest = PRIORITY_NO_EXECUTE;
    for (const QueueView& queue : device.ready) highest = std::max(highest, queue.priority);
    for (QueueView& queue : device.ready) queue.run = queue.priority == highest;
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

constinit const HighestPriorityFirst policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::hpf
