// Heterogeneous highest priority first: the most urgent ready queues of all devices run. Queues of a lower
// priority are held on every device, also where nothing more urgent is ready.
//
// For devices that slow each other down, because they share memory and its bandwidth: an NPU beside an
// integrated GPU.
//
// It fails where devices are independent: they stand idle without need. As under HPF, all others starve where
// the most urgent programs always have work.
#include "sched/core/highest_first.h"

namespace xsched::sched::hhpf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyHeterogeneousHighestPriorityFirst,
    .name = "HHPF",
    .summary = "heterogeneous highest priority first: HPF over all devices at once",
    .hints = {.priority = true},
    .scope = Scope::kAllDevices,
    .steady = true,
};

class HeterogeneousHighestPriorityFirst final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    for (QueueView& queue : device.ready) queue.run = queue.priority >= device.highest_of_all;
    return kNever;
  }

  bool CanHold(const Hints& victim, const Hints& rival) const override {
    return rival.priority > victim.priority;
  }

  Division Divide(std::span<ProcessView> processes) const override {
    return SliceHighestFirst(processes, [](const ProcessView& process) { return process.priority; });
  }
};

constinit const HeterogeneousHighestPriorityFirst policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::hhpf
