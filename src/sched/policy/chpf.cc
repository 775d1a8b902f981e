// CPU highest priority first: HPF with the priority that the CPU's scheduler gives to a process: its nice
// value, or its real-time class, which is above all nice values. Processes of equal priority run at the same
// time, and queues of one process never hold each other.
//
// For programs that are started with nice, or as real-time processes, and give no hints.
//
// It fails where the most urgent processes always have work: all others starve. Only the priority of a
// process's first thread counts. It is read when the process comes, and every second.
#include "sched/core/highest_first.h"

namespace xsched::sched::chpf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyCPUHighestPriorityFirst,
    .name = "CHPF",
    .summary = "CPU highest priority first: processes by their nice value or real-time class",
    .hints = {.cpu_priority = true},
    .granularity = Granularity::kProcess,
    .steady = true,
};

class CpuHighestPriorityFirst final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    RunHighest(device.ready, [](const QueueView& queue) { return queue.facts.cpu_priority; });
    return kNever;
  }

  // It may change at any time.
  bool CanHold(const Hints&, const Hints&) const override { return true; }

  Division Divide(std::span<ProcessView> processes) const override {
    return SliceHighestFirst(processes,
                             [](const ProcessView& process) { return process.facts.cpu_priority; });
  }
};

constinit const CpuHighestPriorityFirst policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::chpf
