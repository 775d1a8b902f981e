#include "sched/core/process_slices.h"

#include <algorithm>

#include "sched/core/queue_record.h"

namespace xsched::sched {
namespace {

// How long a process without queues is still counted in.
constexpr Duration kKeep = std::chrono::seconds(1);

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
  if (division_ == Division::kNone) {
    for (ProcessView& view : views_) view.slice = kDriversSlice;
  }
  for (const ProcessView& view : views_) {
    if (view.slice != SliceOf(view.id)) sink.SetSlice(view.id, device, view.slice);
  }
  for (const Set& set : slices_) {
    auto is_its = [&set](const ProcessView& view) { return view.id == set.process; };
    bool gone = std::none_of(views_.begin(), views_.end(), is_its);
    if (gone && set.slice != kDriversSlice) sink.SetSlice(set.process, device, kDriversSlice);
  }
  slices_.Clear();
  for (const ProcessView& view : views_) {
    if (!slices_.Push(Set{view.id, view.slice})) return;
  }
  for (QueueRecord* queue : queues) {
    queue->has_shortest_slice = SliceOf(queue->process) == kShortestSlice;
    auto holds_it = [&](const QueueRecord* other) {
      return other != queue && other->process == queue->process && policy.CanHold(queue->hints, other->hints);
    };
    queue->held_by_own = !none() && std::any_of(queues.begin(), queues.end(), holds_it);
  }
}

Duration ProcessSlices::SliceOf(ProcessId process) const {
  for (const Set& set : slices_) {
    if (set.process == process) return set.slice;
  }
  return kDriversSlice;
}

TimePoint ProcessSlices::TakeTurns(std::span<QueueRecord* const> queues, TimePoint now, Duration turn) {
  if (division_ != Division::kBesideHolding) return kNever;
  auto competes = [](const QueueRecord& queue) {
    return queue.run && queue.has_shortest_slice && queue.Takes();
  };
  // The lowest id, and the lowest above that of whose turn it is.
  bool any = false;
  bool keeps = false;
  bool others = false;
  ProcessId first{};
  ProcessId next{};
  bool has_next = false;
  for (const QueueRecord* queue : queues) {
    if (!competes(*queue)) continue;
    ProcessId process = queue->process;
    if (!any || process < first) first = process;
    if (process > turn_ && (!has_next || process < next)) {
      next = process;
      has_next = true;
    }
    any = true;
    keeps |= process == turn_;
    others |= process != turn_;
  }
  if (!any) return kNever;
  if (!keeps || (others && now >= turn_until_)) {
    turn_ = has_next ? next : first;
    turn_until_ = now + turn;
  }
  for (QueueRecord* queue : queues) {
    if (competes(*queue) && queue->process != turn_) queue->run = false;
  }
  return others ? turn_until_ : kNever;
}

}  // namespace xsched::sched
