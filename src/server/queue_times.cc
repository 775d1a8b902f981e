#include "server/queue_times.h"

#include <new>

namespace xsched::server {

RequestTimes* QueueTimes::Add(sched::QueueId queue, uid_t user) noexcept try {
  if (queues_.size() >= limits_.of_all) return nullptr;
  const uid_t owner = subordinates_.OwnerOf(user);
  size_t& of_owner = of_owners_[owner];
  if (of_owner >= limits_.of_user) return nullptr;
  RequestTimes& times = queues_.emplace(static_cast<uint64_t>(queue), Timed{owner, {}}).first->second.times;
  ++of_owner;
  return &times;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void QueueTimes::Remove(sched::QueueId queue) noexcept {
  const auto found = queues_.find(static_cast<uint64_t>(queue));
  if (found == queues_.end()) return;
  const auto of_owner = of_owners_.find(found->second.owner);
  if (--of_owner->second == 0) of_owners_.erase(of_owner);
  queues_.erase(found);
}

}  // namespace xsched::server
