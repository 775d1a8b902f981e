// Asks the policies of the chain which queues run.
#include <algorithm>

#include "sched/core/scheduler_impl.h"
#include "sched/core/views.h"

namespace xsched::sched {
namespace {

// How often the policies of a chain are asked in one decision, if all that they let run have used up their
// limits.
constexpr int kMostRounds = 4;

// Where one process at a time is on the device, a time slice for policies is so many times as long. It takes
// a good part of a millisecond to take one off and put another on.
constexpr int64_t kSlicesOfTurn = 4;

}  // namespace

// Each policy of the chain decides on all devices before the next one does.
void Scheduler::Impl::AskPolicies(TimePoint now) const {
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    device->policy_at = kNever;
    if (!policy.HasLimits()) continue;
    for (QueueRecord* queue : device->active) {
      // A limit holds in the watchdog's windows as well. It ends by itself.
      if (device->asks || queue->limited_until <= now) queue->limited_until = TimePoint{};
      queue->limited = queue->limited_until > now;
    }
  }
  for (int round = 0; round < kMostRounds && AskPoliciesOnce(now); ++round) {
  }
}

// Asks about the queues that have not used up their limits. True: all that a policy has let run have used
// them up now, and there are others.
bool Scheduler::Impl::AskPoliciesOnce(TimePoint now) const {
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    for (QueueRecord* queue : device->active) {
      queue->run = queue->limited_until <= now;
      queue->chosen = false;
    }
  }
  for (size_t layer = 0; layer < policy.layers().size(); ++layer) {
    const auto& [asked, by] = policy.layers()[layer];
    const bool all_devices = asked->info().scope == Scope::kAllDevices;
    const Priority highest_of_all = all_devices ? HighestOfAll(by) : PRIORITY_NO_EXECUTE;
    for (DeviceRecord* device : devices) {
      if (!device->due || !device->asks) continue;
      // What the policies behind it make of those that run in the gaps, it cannot know.
      const bool gaps = layer + 1 == policy.layers().size();
      MakeViews(*device, now, layer, by, asked->info(), gaps);
      if (device->views.empty()) continue;
      const DeviceView view{
          .now = now,
          .timeslice = config.timeslice * (device->slices.take_turns() ? kSlicesOfTurn : 1),
          .at_a_time = config.at_a_time,
          .ready = device->views,
          .state = &device->policy_states[layer],
          .highest_of_all = highest_of_all,
          .least_turn = device->slices.take_turns() ? kLeastTurnOnDevice : Duration::zero()};
      device->policy_at = std::min(device->policy_at, asked->Decide(view));
      TakeDecision(*device, layer, by);
    }
  }
  return policy.HasLimits() && AnyLimitReached(now);
}

bool Scheduler::Impl::AnyLimitReached(TimePoint now) const {
  bool again = false;
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    bool runs = false;
    bool limited_now = false;
    bool others = false;
    for (QueueRecord* queue : device->active) {
      const bool was_shown = !queue->limited;
      queue->limited = queue->limited_until > now;
      if (!queue->IsEligible()) continue;
      runs |= queue->run;
      limited_now |= queue->limited && was_shown;
      others |= !queue->limited;
    }
    again |= !runs && limited_now && others;
  }
  return again;
}

// Of the queues that the former policies let run.
Priority Scheduler::Impl::HighestOfAll(Granularity by) const {
  Priority highest = PRIORITY_NO_EXECUTE;
  for (const DeviceRecord* device : devices) {
    for (const QueueRecord* queue : device->active) {
      if (queue->run && queue->IsEligible()) highest = std::max(highest, PriorityFor(*queue, by));
    }
  }
  return highest;
}

}  // namespace xsched::sched
