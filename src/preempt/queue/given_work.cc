#include "preempt/queue/given_work.h"

#include <unistd.h>

#include <algorithm>

#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {
namespace {

constexpr useconds_t kFirstNapUs = 20;
constexpr useconds_t kLongestNapUs = 200;

// A process with a short time slice, or off the device while others have their turns, moves in jumps.
constexpr int kWhileSliced = 10;

}  // namespace

GivenWork::GivenWork(XQueueTable& queues, uint64_t context) : queues_(queues) {
  for (uint32_t next = 0; XQueuePin queue = queues_.PinNext(&next);) {
    if (queue->hwq().context != context || !queue->has_device_gates()) continue;
    const Priority priority = queue->hints().priority;
    least_ = std::min(least_, priority);
    most_ = std::max(most_, priority);
    // What the program has suspended does not move before the call.
    if (queue->suspended() || count_ == kMaxQueues) continue;
    newest_[count_++] = {queue->handle(), queue->issued(), queue->retired()};
  }
}

GivenWork::Progress GivenWork::Look(Newest& newest) const {
  // Pinned for this look only: whoever destroys the queue waits for those who have it.
  XQueuePin queue = queues_.Pin(newest.queue);
  if (!queue || queue->suspended()) return Progress::kDone;
  if (queue->retired() < newest.number && !queue->MayBeFull()) queue->AskDevice();
  const uint64_t retired = queue->retired();
  if (retired >= newest.number) return Progress::kDone;
  if (queue->Held() && !queue->ForcedOpen() && queue->hints().priority >= most_) return Progress::kHeld;
  if (retired == newest.seen_retired) return Progress::kNone;
  newest.seen_retired = retired;
  return Progress::kMoved;
}

bool GivenWork::Await(Duration patience, ProcessLevel& process_level) {
  TimePoint moved_at = MonotonicClock::now();
  for (useconds_t nap = kFirstNapUs;; nap = std::min(nap + nap / 4, kLongestNapUs)) {
    bool moved = false;
    for (int i = 0; i < count_;) {
      const Progress progress = Look(newest_[i]);
      moved |= progress != Progress::kNone;
      if (progress == Progress::kDone) {
        newest_[i] = newest_[--count_];
      } else {
        ++i;
      }
    }
    if (count_ == 0) return true;
    const TimePoint now = MonotonicClock::now();
    if (moved) moved_at = now;
    const Duration patience_now = process_level.AnyTaken() ? patience * kWhileSliced : patience;
    if (now - moved_at >= patience_now) return false;
    usleep(nap);
  }
}

}  // namespace xsched::preempt
