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
// Commands up to this length count as short: as far apart as gates are where nothing else stops a queue.
constexpr Duration kBrief = std::chrono::microseconds(50);
// So much of the device's time tells how long a process's commands are.
constexpr Duration kWeighAfter = std::chrono::milliseconds(20);
// How long a process takes to say what it has retired, when asked.
constexpr Duration kAnswerTime = std::chrono::milliseconds(1);

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
  const auto is_shortest = [](const ProcessView& view) { return view.slice == kShortestSlice; };
  sharing_ = sharing_ && division_ == Division::kBesideHolding &&
             std::count_if(views_.begin(), views_.end(), is_shortest) > 1;

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
    const bool waits = member.slice == kShortestSlice && (sharing_ || member.reported == kNoSlice);
    if (!waits) Report(device, member, member.slice, sink);
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
  Account(now);
  if (division_ != Division::kBesideHolding) {
    for (Member& member : members_) member.looked_at = false;
    return kNever;
  }
  CountQueues(queues);
  const Member* next = After(turn_);
  if (next == nullptr) {
    // A more urgent process is at work: who is off stays so.
    urgent_came_ |= std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.ready; });
    return kNever;
  }
  const bool others = next->process != turn_;
  const TimePoint weigh_at = Weigh(now, queues, sink);
  // Once begun, it goes on while one of them has a pause.
  sharing_ = (sharing_ || others) && std::all_of(members_.begin(), members_.end(),
                                                 [](const Member& m) { return !m.ready || m.brief; });
  ChooseTurn(now, turn, *next);
  for (Member& member : members_) {
    if (member.slice != kShortestSlice) continue;
    if (sharing_) {
      Report(device, member, kDriversSlice, sink);
    } else {
      // Who has nothing to do disturbs nobody, and shall find the device at once.
      bool off = member.ready && member.process != turn_;
      Report(device, member, off ? kNoSlice : kShortestSlice, sink);
    }
  }
  return others ? std::min(weigh_at, (sharing_ ? now : turn_until_) + kPatience) : kNever;
}

void ProcessSlices::ChooseTurn(TimePoint now, Duration turn, const Member& next) {
  const Duration patience = std::exchange(urgent_came_, false) ? Duration::zero() : kPatience;
  const Member* current = Find(turn_);
  if (current != nullptr && current->competes && (next.process == turn_ || now < turn_until_ + patience))
    return;
  turn_ = next.process;
  turn_until_ = now + turn;
}

// Gives out the device's time since the last call, by who was on it until now.
void ProcessSlices::Account(TimePoint now) {
  const Duration elapsed = now - std::exchange(accounted_at_, now);
  const auto count =
      std::count_if(members_.begin(), members_.end(), [this](const Member& m) { return IsOn(m); });
  for (Member& member : members_) {
    if (IsOn(member)) member.on_device += elapsed / count;
  }
}

// How long its commands take, of whom has been on the device for long enough to tell. Returns when to be
// called again at the latest.
TimePoint ProcessSlices::Weigh(TimePoint now, std::span<QueueRecord* const> queues, ControlSink& sink) {
  TimePoint next = kNever;
  for (Member& member : members_) {
    if (member.weigh_at == kNever) {
      if (member.looked_at ? member.on_device < kWeighAfter : !IsOn(member)) continue;
      for (const QueueRecord* queue : queues) {
        if (queue->process == member.process && queue->control.tracked) sink.Query(queue->id);
      }
      member.weigh_at = now + kAnswerTime;
    } else if (now >= member.weigh_at) {
      member.weigh_at = kNever;
      const uint64_t before = std::exchange(member.seen_retired, member.retired);
      const Duration time = std::exchange(member.on_device, Duration::zero());
      if (!std::exchange(member.looked_at, true)) continue;
      // A queue may have gone.
      const auto commands = static_cast<int64_t>(member.retired > before ? member.retired - before : 0);
      member.brief = time <= (member.brief ? 2 * kBrief : kBrief) * commands;
    }
    next = std::min(next, member.weigh_at);
  }
  return next;
}

void ProcessSlices::CountQueues(std::span<QueueRecord* const> queues) {
  for (Member& member : members_) {
    member.ready = member.competes = false;
    member.retired = 0;
  }
  for (const QueueRecord* queue : queues) {
    Member* member = Find(queue->process);
    if (member == nullptr || member->slice != kShortestSlice) continue;
    member->retired += queue->retired;
    member->ready |= queue->Takes();
    member->competes |= queue->Takes() && queue->run;
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
