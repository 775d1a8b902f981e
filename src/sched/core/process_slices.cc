#include "sched/core/process_slices.h"

#include <algorithm>
#include <utility>

#include "sched/core/queue_record.h"

namespace xsched::sched {
namespace {

// How long a process without queues is still counted in.
constexpr Duration kKeep = std::chrono::seconds(1);
// How long a change of turns that is due waits for a more urgent process to come and finish. A change takes
// the device from everybody for most of a millisecond, which an urgent process that comes just then feels
// (H200: p99 1.5 times alone, with changes every 5 ms); right after one has finished, none is about to come.
constexpr Duration kPatience = std::chrono::milliseconds(100);

}  // namespace

void ProcessSlices::QueueGone(TimePoint now) {
  // Where everybody has the driver's slice, nobody gets another by one queue less.
  if (!none()) refresh_at_ = std::min(refresh_at_, now + kKeep);
}

void ProcessSlices::Refresh(const Policy& policy, DeviceId device, std::span<QueueRecord* const> queues,
                            ControlSink& sink) {
  refresh_at_ = kNever;
  views_.Clear();
  bool all_sliceable = true;
  for (const QueueRecord* queue : queues) {
    all_sliceable &= queue->sliceable;
    ProcessView* view = std::find_if(views_.begin(), views_.end(), [queue](const ProcessView& other) {
      return other.id == queue->process;
    });
    if (view == views_.end()) {
      if (!views_.Push(ProcessView{queue->process, queue->hints.priority, queue->hints.utilization, {}}))
        return;
      continue;
    }
    view->priority = std::max(view->priority, queue->hints.priority);
    view->utilization = std::max(view->utilization, queue->hints.utilization);
  }
  // Who cannot be sliced would have the driver's slice beside the others' shortest.
  division_ = views_.size() > 1 && all_sliceable ? policy.Divide(views_) : Division::kNone;

  for (size_t i = members_.size(); i-- > 0;) {
    Member& member = members_[i];
    auto is_its = [&member](const ProcessView& view) { return view.id == member.process; };
    if (std::any_of(views_.begin(), views_.end(), is_its)) continue;
    Report(device, member, kDriversSlice, sink);
    members_.Remove(i);
  }
  for (const ProcessView& view : views_) {
    if (Find(view.id) == nullptr && !members_.Push(Member{view.id, kDriversSlice, kDriversSlice})) continue;
    Member& member = *Find(view.id);
    member.slice = none() ? kDriversSlice : view.slice;
    // Who is off has its turn to come.
    if (member.slice != kShortestSlice || member.reported != kNoSlice)
      Report(device, member, member.slice, sink);
  }
  for (QueueRecord* queue : queues) {
    auto holds_it = [&](const QueueRecord* other) {
      return other != queue && other->process == queue->process && policy.CanHold(queue->hints, other->hints);
    };
    queue->held_by_own = !none() && std::any_of(queues.begin(), queues.end(), holds_it);
  }
}

TimePoint ProcessSlices::TakeTurns(DeviceId device, std::span<QueueRecord* const> queues, TimePoint now,
                                   Duration turn, ControlSink& sink) {
  if (division_ != Division::kBesideHolding) return kNever;
  CountQueues(queues);
  const Member* next = After(turn_);
  if (next == nullptr) {
    // A more urgent process is at work: who is off stays so.
    urgent_came_ |= std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.ready; });
    return kNever;
  }
  const Duration patience = std::exchange(urgent_came_, false) ? Duration::zero() : kPatience;
  const Member* current = Find(turn_);
  const bool others = next->process != turn_;
  if (current == nullptr || !current->competes || (others && now >= turn_until_ + patience)) {
    turn_ = next->process;
    turn_until_ = now + turn;
  }
  for (Member& member : members_) {
    if (member.slice != kShortestSlice) continue;
    // Who has nothing to do disturbs nobody, and shall find the device at once.
    bool off = member.ready && member.process != turn_;
    Report(device, member, off ? kNoSlice : kShortestSlice, sink);
  }
  return others ? turn_until_ + kPatience : kNever;
}

void ProcessSlices::CountQueues(std::span<QueueRecord* const> queues) {
  for (Member& member : members_) member.ready = member.competes = false;
  for (const QueueRecord* queue : queues) {
    Member* member = queue->Takes() ? Find(queue->process) : nullptr;
    if (member == nullptr || member->slice != kShortestSlice) continue;
    member->ready = true;
    member->competes |= queue->run;
  }
}

const ProcessSlices::Member* ProcessSlices::After(ProcessId process) const {
  const size_t count = members_.size();
  size_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    if (members_[i].process == process) start = i + 1;
  }
  for (size_t i = 0; i < count; ++i) {
    const Member& member = members_[(start + i) % count];
    if (member.competes) return &member;
  }
  return nullptr;
}

ProcessSlices::Member* ProcessSlices::Find(ProcessId process) {
  for (Member& member : members_) {
    if (member.process == process) return &member;
  }
  return nullptr;
}

void ProcessSlices::Report(DeviceId device, Member& member, Duration slice, ControlSink& sink) {
  if (member.reported == slice) return;
  member.reported = slice;
  sink.SetSlice(member.process, device, slice);
}

}  // namespace xsched::sched
