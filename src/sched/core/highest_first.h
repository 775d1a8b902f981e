// What the policies have in common that let the most urgent ready queues run, all of them at the same time.
// They differ in what makes a queue urgent: `urgency_of(view)`, a number that is bigger for the more urgent.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "sched/core/policy.h"

namespace xsched::sched {

// Lets the most urgent ones run, and in the gaps that these leave, the next ones.
template <typename UrgencyOf>
void RunHighest(std::span<QueueView> ready, UrgencyOf&& urgency_of) {
  int highest = std::numeric_limits<int>::min();
  for (const QueueView& queue : ready) {
    if (!queue.leaves_gaps) highest = std::max<int>(highest, urgency_of(queue));
  }
  for (QueueView& queue : ready) queue.run = urgency_of(queue) >= highest;
}

// The most urgent process gets the device as soon as it has work, and keeps it. Several that are equally
// urgent share it in the driver's own slices, or have it in the order in which they come (in_order.h).
template <typename UrgencyOf>
Division SliceHighestFirst(std::span<ProcessView> processes, UrgencyOf&& urgency_of) {
  int highest = urgency_of(processes.front());
  for (const ProcessView& process : processes) highest = std::max<int>(highest, urgency_of(process));
  auto is_highest = [&](const ProcessView& process) { return urgency_of(process) == highest; };
  const auto equals = std::count_if(processes.begin(), processes.end(), is_highest);
  if (equals == std::ssize(processes)) return Division::kNone;
  for (ProcessView& process : processes) {
    process.slice = !is_highest(process) ? kShortestSlice : equals == 1 ? kLongSlice : kDriversSlice;
  }
  return Division::kBesideHolding;
}

}  // namespace xsched::sched
