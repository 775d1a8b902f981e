#include "preempt/queue/given_work.h"

#include <algorithm>

#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {
namespace {

constexpr Duration kFirstNap = std::chrono::microseconds(20);
constexpr Duration kLongestNap = std::chrono::microseconds(200);

// The most if no scheduler can hold any of the queues. Their progress may never become known. They are
// awaited at all because no other queue of the process is held during the call.
constexpr Duration kPatienceWithoutHolds = std::chrono::milliseconds(5);

// How many times longer to wait if the process has a time slice of ours: it makes progress only in its turns.
constexpr int kWhileSliced = 10;

Duration NextNap(Duration nap) { return std::min(nap + nap / 4, kLongestNap); }

bool IsAwaited(const XQueue& queue, const AwaitedQueues& awaited) {
  const HwQueue& hwq = queue.hwq();
  return queue.state().has_device_gates() && (awaited.context == 0 || hwq.context == awaited.context) &&
         (awaited.device == 0 || hwq.device == awaited.device);
}

}  // namespace

GivenWork::GivenWork(XQueueTable& queues, const AwaitedQueues& awaited, const Time& time)
    : queues_(queues), time_(time) {
  for (uint32_t next = 0; XQueuePin queue = queues_.PinNext(&next);) {
    if (!IsAwaited(*queue, awaited)) continue;
    const Priority priority = queue->hints().priority;
    least_ = std::min(least_, priority);
    most_ = std::max(most_, priority);
    any_may_be_held_ |= (queue->state().flags() & ipc::kFlagGated) != 0;
    // A queue that the program has suspended makes no progress before the call.
    if (queue->suspended() || count_ == kMaxQueues) continue;
    newest_[count_++] = {queue->handle(), queue->issued(), queue->retired()};
  }
}

GivenWork::Progress GivenWork::Look(Newest& newest) const {
  // Pinned only for this check, because a thread that destroys the queue waits for all pins.
  XQueuePin queue = queues_.Pin(newest.queue);
  if (!queue || queue->suspended()) return Progress::kDone;
  if (queue->retired() < newest.number && !queue->state().MayBeFull()) queue->flow().AskDevice();
  const uint64_t retired = queue->retired();
  if (retired >= newest.number) return Progress::kDone;
  if (queue->Held() && !queue->state().ForcedOpen())
    return queue->hints().priority >= most_ ? Progress::kHeld : Progress::kHeldForCaller;
  if (retired == newest.seen_retired) return Progress::kNone;
  newest.seen_retired = retired;
  return Progress::kMoved;
}

bool GivenWork::LookAtAll(bool held_only) {
  bool moved = false;
  for (int i = 0; i < count_;) {
    Progress progress = Look(newest_[i]);
    const bool held = progress == Progress::kHeld || progress == Progress::kHeldForCaller;
    if (held_only && !held) progress = Progress::kDone;
    moved |= progress != Progress::kNone && progress != Progress::kHeldForCaller;
    if (progress == Progress::kDone) {
      newest_[i] = newest_[--count_];
    } else {
      ++i;
    }
  }
  return moved;
}

Duration GivenWork::PatienceNow(Duration patience, ProcessLevel& process_level) const {
  if (!any_may_be_held_) return std::min(patience, kPatienceWithoutHolds);
  return process_level.AnyTaken() ? patience * kWhileSliced : patience;
}

bool GivenWork::Await(Duration patience, ProcessLevel& process_level) {
  TimePoint moved_at = time_.now();
  for (Duration nap = kFirstNap;; nap = NextNap(nap)) {
    const bool moved = LookAtAll(false);
    if (count_ == 0) return true;
    const TimePoint now = time_.now();
    if (moved) moved_at = now;
    if (now - moved_at >= PatienceNow(patience, process_level)) return false;
    time_.nap(nap);
  }
}

void GivenWork::AwaitNotHeld(Duration patience) {
  TimePoint moved_at = time_.now();
  for (Duration nap = kFirstNap;; nap = NextNap(nap)) {
    const bool moved = LookAtAll(true);
    if (count_ == 0) return;
    const TimePoint now = time_.now();
    if (moved) moved_at = now;
    if (now - moved_at >= patience) return;
    time_.nap(nap);
  }
}

}  // namespace xsched::preempt
