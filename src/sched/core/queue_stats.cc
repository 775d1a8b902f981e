#include "sched/core/queue_stats.h"

#include <algorithm>

#include "sched/core/accounting.h"

namespace xsched::sched {
namespace {

// The queue that this one waits for. Null: not known.
const QueueRecord* LeaderFor(const QueueRecord& queue) {
  const DeviceRecord& device = *queue.device;
  if (device.leader != nullptr) return device.leader;
  return device.awaited == &queue ? device.awaits : device.awaited;
}

WaitReason ReasonOf(const PolicySetting& setting, const QueueRecord& queue) {
  if (!queue.Unfinished()) return WaitReason::kNone;
  if (queue.absent) return WaitReason::kAbsent;
  if (!queue.control.run) {
    if (queue.limited) return WaitReason::kLimited;
    const QueueRecord* const leader = LeaderFor(queue);
    const bool behind =
        leader != nullptr && !setting.HasBetterClaim(ClaimOf(*leader).hints, ClaimOf(queue).hints);
    return behind ? WaitReason::kTurn : WaitReason::kHeld;
  }
  if (queue.process->off()) return WaitReason::kOffDevice;
  return queue.watch.stalled() ? WaitReason::kStalled : WaitReason::kNone;
}

}  // namespace

QueueStats StatsOf(const PolicySetting& setting, const QueueRecord& queue, TimePoint now) {
  Account(*queue.device, now);
  QueueStats stats;
  stats.state = queue.state;
  stats.stalled = queue.watch.stalled();
  stats.wait_reason = ReasonOf(setting, queue);
  const QueueRecord* const leader = LeaderFor(queue);
  switch (stats.wait_reason) {
    case WaitReason::kNone:
      break;
    case WaitReason::kHeld:
    case WaitReason::kTurn:
      if (leader != nullptr) stats.waits_for = leader->id;
      [[fallthrough]];
    case WaitReason::kLimited:
      stats.waiting_since = queue.held_since;
      break;
    case WaitReason::kOffDevice:
      // If nobody works, the leader may be a queue of the same process.
      if (leader != nullptr && leader->process != queue.process) stats.waits_for = leader->id;
      stats.waiting_since = std::max(queue.process->off_since, queue.ready_since);
      break;
    case WaitReason::kStalled:
      stats.waiting_since = queue.watch.stalled_since();
      break;
    case WaitReason::kAbsent:
      stats.waiting_since = std::max(queue.absent_since, queue.ready_since);
      break;
  }
  if (stats.wait_reason == WaitReason::kLimited)
    stats.limited_for = std::max(queue.limited_until - now, Duration::zero());
  stats.control = queue.control;
  stats.submitted = queue.submitted;
  stats.retired = queue.retired;
  stats.service = ServiceOf(queue);
  stats.waiting = queue.waiting;
  if (queue.charge == Charge::kWaiting) stats.waiting += now - queue.waiting_mark;
  stats.holds = queue.holds;
  stats.incidents = queue.incidents;
  stats.slice = queue.process->reported;
  stats.has_turn = queue.process->has_turn;
  return stats;
}

}  // namespace xsched::sched
