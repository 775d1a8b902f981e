// Active window first: processes whose window is the active one of a display run before all others. Those of
// several displays run at the same time, and so do the others while none of these has work.
//
// For desktops: what the user looks at is fast. A window manager, or a script, says which process has the
// active window (xsched hint --pid … --window-active). Queues of one process never hold each other.
//
// It fails where the active program always has work, such as a game without a limit of its frame rate: all
// others starve.
#include "sched/core/highest_first.h"

namespace xsched::sched::awf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyActiveWindowFirst,
    .name = "AWF",
    .summary = "active window first: the processes that the user looks at",
    .hints = {.window_active = true},
    .granularity = Granularity::kProcess,
    .steady = true,
};

class ActiveWindowFirst final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    RunHighest(device.ready, [](const QueueView& queue) { return queue.facts.window_active; });
    return kNever;
  }

  // Another window may become the active one at any time.
  bool CanHold(const Hints&, const Hints&) const override { return true; }

  Division Divide(std::span<ProcessView> processes) const override {
    return SliceHighestFirst(processes,
                             [](const ProcessView& process) { return process.facts.window_active; });
  }
};

constinit const ActiveWindowFirst policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::awf
