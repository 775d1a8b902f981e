// Asks the policies of the chain which queues run.
#include <algorithm>

#include "sched/core/scheduler_impl.h"
#include "sched/core/views.h"

namespace xsched::sched {
namespace {

// Where one process at a time is on the device, a time slice for policies is so many times as long. It takes
// a good part of a millisecond to take one off and put another on.
constexpr int64_t kSlicesOfTurn = 4;

}  // namespace

// Each policy of the chain decides on all devices before the next one does.
void Scheduler::Impl::AskPolicies(TimePoint now) const {
  FindLimits(now);
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
      const TimePoint next = asked->Decide(DeviceViewOf(*device, layer, now, highest_of_all));
      device->policy_at = std::min(device->policy_at, next);
      TakeDecision(*device, layer, by);
    }
  }
}

// Lets all queues run that have not used up their limits. A limit holds in the watchdog's windows as well: it
// ends by itself.
void Scheduler::Impl::FindLimits(TimePoint now) const {
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    device->policy_at = kNever;
    for (QueueRecord* queue : device->active) {
      queue->run = true;
      queue->chosen = false;
    }
    if (!policy.HasLimits()) continue;
    FindLimits(*device, now);
    for (QueueRecord* queue : device->active) {
      if (queue->limited_until <= now) queue->limited_until = TimePoint{};
      queue->limited = queue->limited_until > now;
      queue->run = !queue->limited;
    }
  }
}

void Scheduler::Impl::FindLimits(DeviceRecord& device, TimePoint now) const {
  for (QueueRecord* queue : device.active) {
    queue->limited_until = TimePoint{};
    queue->left_of_limit = Duration::max();
  }
  for (size_t layer = 0; layer < policy.layers().size(); ++layer) {
    const auto& [asked, by] = policy.layers()[layer];
    if (!asked->info().has_limits) continue;
    MakeViews(device, now, layer, by, asked->info(), false);
    if (device.views.empty()) continue;
    const TimePoint next = asked->FindLimits(DeviceViewOf(device, layer, now, PRIORITY_NO_EXECUTE));
    device.policy_at = std::min(device.policy_at, next);
    TakeLimits(device, layer, by);
  }
}

// Those that run without being chosen, in a window or for another queue, use up their limits as well.
void Scheduler::Impl::AskWhenLimitsEnd(TimePoint now) const {
  if (!policy.HasLimits()) return;
  for (DeviceRecord* device : devices) {
    if (!device->due) continue;
    for (const QueueRecord* queue : device->active) {
      if (!queue->run || queue->chosen || queue->left_of_limit == Duration::max()) continue;
      device->policy_at = std::min(device->policy_at, now + std::max(queue->left_of_limit, kShortestTurn));
    }
  }
}

DeviceView Scheduler::Impl::DeviceViewOf(DeviceRecord& device, size_t layer, TimePoint now,
                                         Priority highest_of_all) const {
  const bool take_turns = device.slices.take_turns();
  return {.now = now,
          .timeslice = config.timeslice * (take_turns ? kSlicesOfTurn : 1),
          .at_a_time = config.at_a_time,
          .ready = device.views,
          .state = &device.policy_states[layer],
          .highest_of_all = highest_of_all,
          .least_turn = take_turns ? kLeastTurnOnDevice : Duration::zero()};
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
