// K earliest deadlines first: the k queues whose work is due first run.
//
// For requests with deadlines, as in serving: where all of them can be met, they are (with k = 1). A larger k
// suits devices that are not filled by one queue. A queue's work is due its deadline after it came, as far as
// that is known (sched/core/requests.h).
//
// A queue without a deadline is due one second after it last had a time slice. So it gets the time that
// the others leave, and a little where they leave none. All these queues together go before deadlines for at
// most a tenth of the time, however many they are. Work that is late by more than its deadline is treated in
// the same way: there is nothing left to be met, and others may be in time.
//
// It fails where the deadlines together ask for more than the device can do: which of them are missed is not
// decided by how important they are.
#include <algorithm>
#include <array>

#include "sched/core/policy.h"

namespace xsched::sched::kedf {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyKEarliestDeadlineFirst,
    .name = "KEDF",
    .summary = "k earliest deadlines first",
    .hints = {.deadline = true, .timeslice = true, .at_a_time = true},
    .charges_overruns = true,
    .steady = true,
};

constexpr Duration kWithout = std::chrono::seconds(1);
// After a slice that went before deadlines, this many time slices pass until the next one may.
constexpr int64_t kSlicesBetween = 9;
// So that each queue without a deadline can be served when it is due.
constexpr Duration kLongestSlice = kWithout / (kSlicesBetween + 1);

struct QueueState {
  TimePoint served;  // the end of its last time slice without a deadline
  // The service at which its present time slice ends. It goes on with it if it is held meanwhile; and it may
  // have to wait for a command of another.
  Duration slice_end;
  TimePoint ask_at;  // when it ends if nobody else has of the device's time
};

struct DeviceState {
  TimePoint served;  // likewise, of any queue
};

class KEarliestDeadlines final : public PolicyWithState<QueueState, NoState, DeviceState> {
 public:
  using PolicyWithState::PolicyWithState;

  TimePoint Decide(const DeviceView& device) const override {
    const size_t k = std::min(device.at_a_time, kMostAtATime);
    for (QueueView& queue : device.ready) {
      queue.run = device.ready.size() <= k;
      QueueState& state = StateOf(queue);
      if (!queue.running || HasDeadline(queue, device.now) || queue.service < state.slice_end) continue;
      state.served = StateOf(device).served = device.now;
    }
    if (device.ready.size() <= k) return kNever;
    // A heap of the k earliest so far, the latest of them on top.
    std::array<QueueView*, kMostAtATime + 1> earliest;
    auto* const begin = earliest.data();
    auto* end = begin;
    const Duration slice = std::min(device.timeslice, kLongestSlice);
    const TimePoint goes_first_at = StateOf(device).served + kSlicesBetween * slice;
    auto is_before = [now = device.now, goes_first_at](const QueueView* one, const QueueView* other) {
      const bool has_deadline = HasDeadline(*one, now);
      if (now < goes_first_at && has_deadline != HasDeadline(*other, now)) return has_deadline;
      const TimePoint due = DueAt(*one, now);
      const TimePoint other_due = DueAt(*other, now);
      return due != other_due ? due < other_due : one->id < other->id;
    };
    for (QueueView& queue : device.ready) {
      if (static_cast<size_t>(end - begin) == k && !is_before(&queue, *begin)) continue;
      *end++ = &queue;
      std::push_heap(begin, end, is_before);
      if (static_cast<size_t>(end - begin) > k) std::pop_heap(begin, end--, is_before);
    }
    TimePoint next = goes_first_at > device.now ? goes_first_at : kNever;
    for (auto* at = begin; at != end; ++at) {
      QueueView& queue = **at;
      queue.run = true;
      const TimePoint slice_end = SliceEnd(queue, slice, device.now);
      next = std::min(next, HasDeadline(queue, device.now) ? LateAt(queue) : slice_end);
    }
    return next;
  }

  bool CanHold(const Hints&, const Hints&) const override { return true; }

  Division Divide(std::span<ProcessView> processes) const override { return OnlyTheRunningOne(processes); }

 private:
  static Duration Deadline(const QueueView& queue) {
    return std::chrono::microseconds(queue.hints.deadline_us);
  }
  static TimePoint LateAt(const QueueView& queue) { return queue.ready_since + 2 * Deadline(queue); }
  static bool HasDeadline(const QueueView& queue, TimePoint now) {
    return queue.hints.deadline_us >= 0 && now < LateAt(queue);
  }
  static TimePoint DueAt(const QueueView& queue, TimePoint now) {
    if (HasDeadline(queue, now)) return queue.ready_since + Deadline(queue);
    return std::max(queue.ready_since, StateOf(queue).served) + kWithout;
  }
  // When its time slice ends, or is looked at again.
  static TimePoint SliceEnd(const QueueView& queue, Duration slice, TimePoint now) {
    QueueState& state = StateOf(queue);
    const bool has_deadline = HasDeadline(queue, now);
    if (queue.running && (has_deadline || now < state.ask_at)) return state.ask_at;
    const bool goes_on = !has_deadline && queue.service < state.slice_end;
    if (!goes_on) state.slice_end = queue.service + slice;
    state.slice_end = std::max(state.slice_end, queue.service + kShortestTurn);
    return state.ask_at = now + (state.slice_end - queue.service);
  }
};

constinit const KEarliestDeadlines policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::kedf
