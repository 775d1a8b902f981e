#include "cli/top/recent.h"

#include <algorithm>
#include <utility>

namespace xsched::cli {

void Recent::BeginLook(TimePoint now, Duration span) {
  now_ = now;
  span_ = span;
  covered_ = {};
  waits_ = ProcessWaits();
  const int64_t oldest = PartOf(now) - parts_ + 1;
  for (auto& [id, queue] : queues_) {
    queue.requests.erase(queue.requests.begin(), queue.requests.lower_bound(oldest));
    // What goes on is in every look. So the queue has gone, or the server has forgotten the request.
    if (!std::exchange(queue.seen, false)) queue.open = false;
  }
  std::erase_if(queues_,
                [](const auto& entry) { return entry.second.requests.empty() && !entry.second.open; });
}

void Recent::Take(const ipc::Packet& packet) {
  waits_.Take(packet);
  if (packet.header().type == ipc::MessageType::kRecordedBurst) TakeBurst(packet.As<ipc::RecordedBurst>());
}

void Recent::TakeBurst(const ipc::RecordedBurst& burst) {
  if ((burst.flags & ipc::kBurstUnseen) != 0) return;
  Queue& queue = queues_[burst.queue_id];
  queue.seen = true;
  const TimePoint began = now_ - span_ + Duration(static_cast<Duration::rep>(burst.at_ns));
  const TimePoint ended = began + Duration(static_cast<Duration::rep>(burst.span_ns));
  // One that went on at the last look begins with this one's time.
  const bool goes_on = (burst.flags & ipc::kBurstContinued) != 0 || burst.at_ns == 0;
  if (!queue.open || !goes_on) {
    queue.began = began;
    queue.is_whole = (burst.flags & ipc::kBurstContinued) == 0;
  }
  queue.open = (burst.flags & ipc::kBurstCut) != 0;
  if (queue.open || !queue.is_whole) return;
  queue.requests[PartOf(std::min(ended, now_))].Add(ended - queue.began);
}

Recent::Requests Recent::RequestsOf(uint64_t id) const {
  Requests requests;
  requests.longest.resize(static_cast<size_t>(parts_));
  const auto queue = queues_.find(id);
  if (queue == queues_.end()) return requests;
  const int64_t oldest = PartOf(now_) - parts_ + 1;
  for (const auto& [part, distribution] : queue->second.requests) {
    if (part < oldest) continue;
    requests.all.Add(distribution);
    requests.longest[static_cast<size_t>(part - oldest)] = distribution.largest();
  }
  return requests;
}

}  // namespace xsched::cli
