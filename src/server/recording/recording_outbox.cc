#include "server/recording/recording_outbox.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/limits.h"

namespace xsched::server {
namespace {

ipc::Reply RecordingReply(XResult result, uint64_t count, const char* text) {
  return ipc::ReplyFrom(result, static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX)),
                        std::string(text));
}

}  // namespace

bool RecordingOutbox::HasRoom() const { return ends_ || unsent_.size() < kMaxUnreadRecords; }

void RecordingOutbox::Drop(uint64_t events) {
  untold_ += events;
  dropped_here_ += events;
  dropped_ += events;
}

void RecordingOutbox::PutLoss(TimePoint now) {
  if (untold_ == 0) return;
  ipc::RecordedLoss loss{};
  loss.at_ns = RecordedTime(began_, now);
  loss.lost = untold_;
  Put(loss);
  untold_ = 0;
}

bool RecordingOutbox::PutReply(XResult result, uint64_t count, const char* text) {
  constexpr size_t kRoomForReplies = 64;
  if (unsent_.size() >= kMaxUnreadRecords + kRoomForReplies) return false;
  Put(RecordingReply(result, count, text));
  return true;
}

void RecordingOutbox::PutLastReply(uint64_t count) { Put(RecordingReply(kXSchedSuccess, count, "")); }

Sent RecordingOutbox::Send(Connection& tool, WorkBudget& work, const std::function<bool()>& refill,
                           TimePoint now) {
  const bool was_blocked = std::exchange(blocked_, false);
  for (;; unsent_.pop_front()) {
    if (unsent_.empty() && !refill()) return Sent::kAll;
    Sent outcome = Sent::kRestLater;
    if (!unsent_.empty() && !work.IsSpent(tool.peer.uid)) {
      work.Charge(tool.peer.uid, WorkBudget::kSent);
      outcome = tool.SendPart(unsent_.front());
    }
    if (outcome != Sent::kAll) {
      blocked_ = true;
      if (!was_blocked) blocked_since_ = now;
      return outcome;
    }
    blocked_since_ = now;
  }
}

}  // namespace xsched::server
