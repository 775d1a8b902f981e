// Highest priority first: the most urgent ready queues run. Equally urgent ones run at the same time.
//
// For an urgent program beside batch jobs, which use the time that it leaves free. It suits urgent programs
// that need the device only for a part of the time.
//
// It fails where the most urgent programs always have work: all others starve. It has no shares: equally
// urgent programs get what the driver gives them.
#include "sched/core/highest_first.h"

namespace xsched::sched::hpf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyHighestPriorityFirst,
    .name = "HPF",
    .summary = "highest priority first, equals side by side",
    .hints = {.priority = true},
    .claim = ClaimBy::kPriority,
    .steady = true,
};

class HighestPriorityFirst final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    RunHighest(device.ready, [](const QueueView& queue) { return queue.priority; });
    return kNever;
  }

  bool CanHold(const Hints& victim, const Hints& rival) const override {
    return rival.priority > victim.priority;
  }

  Division Divide(std::span<ProcessView> processes) const override {
    return SliceHighestFirst(processes, [](const ProcessView& process) { return process.priority; });
  }
};

constinit const HighestPriorityFirst policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::hpf
