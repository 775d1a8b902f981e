// First come, first served: the queue that is ready for longest runs alone. It is not a policy of XSched. A
// test adds it to the others with this file only.
#include "sched/core/policy.h"

namespace xsched::sched::fcfs {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyMax,  // no policy of XSched has this number
    .name = "FCFS",
    .summary = "first come, first served: one queue at a time, until it has no work",
    .hints = {},
};

class FirstComeFirstServed final : public Policy {
 public:
  using Policy::Policy;

  TimePoint Decide(const DeviceView& device) const override {
    QueueView* first = nullptr;
    for (QueueView& queue : device.ready) {
      queue.run = false;
      if (first == nullptr || queue.ready_since < first->ready_since) first = &queue;
    }
    first->run = true;
    return kNever;
  }

  bool CanHold(const Hints&, const Hints&) const override { return true; }
};

constinit const FirstComeFirstServed policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::fcfs
