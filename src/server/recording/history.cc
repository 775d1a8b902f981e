#include "server/recording/history.h"

#include <algorithm>
#include <new>

#include "server/recording/process_track.h"

namespace xsched::server {

// Takes what a track puts. An event for which there is no memory is not remembered.
class History::Sink final : public RecordSink {
 public:
  Sink(History& history, Followed& queue) : history_(history), queue_(queue) {}

  void Put(const RecordedEvent& event) override {
    std::visit([&](const auto& known) { Keep(known); }, event);
  }

 private:
  template <typename T>
  void Keep(const T& event) {
    if constexpr (std::is_constructible_v<Event, const T&>) {
      queue_.events_until = history_.Add(queue_.uid, Event(event));
    }
  }

  History& history_;
  Followed& queue_;
};

void History::See(sched::QueueId id, uid_t uid, bool reports, const QueueTrack::Reading& reading,
                  TimePoint now) noexcept try {
  if (!is_kept()) return;
  const auto key = static_cast<uint64_t>(id);
  auto found = queues_.find(key);
  if (!reports) {
    if (found == queues_.end() || !found->second.track) return;
    Sink sink(*this, found->second);
    found->second.track->Finish(reading, now, sink);
    found->second.track.reset();
    return;
  }
  if (found == queues_.end()) found = queues_.emplace(key, Followed{uid, {}}).first;
  std::optional<QueueTrack>& track = found->second.track;
  if (!track) {
    track.emplace(id, began_, reading, QueueTrack::Before::kTime, now);
    return;
  }
  Sink sink(*this, found->second);
  track->See(reading, now, sink);
} catch (const std::bad_alloc&) {
  // It is not followed until it changes again.
}

void History::Keep(sched::QueueId id, uid_t uid, const RecordedEvent& event) noexcept try {
  if (!is_kept()) return;
  Sink sink(*this, queues_.try_emplace(static_cast<uint64_t>(id), Followed{uid, {}}).first->second);
  SinceSink(began_, sink).Put(event);
} catch (const std::bad_alloc&) {
}

bool History::Gone(sched::QueueId id, const QueueTrack::Reading& reading, TimePoint now) noexcept {
  const auto found = queues_.find(static_cast<uint64_t>(id));
  if (found == queues_.end()) return false;
  See(id, found->second.uid, /*reports=*/false, reading, now);
  const User* user = Find(found->second.uid);
  const bool has_events = user != nullptr && found->second.events_until > user->dropped;
  queues_.erase(found);
  return has_events;
}

void History::KeepDescription(const ipc::RecordedQueue& description) noexcept try {
  const auto user = users_.find(description.uid);
  if (user == users_.end()) return;
  User& known = user->second;
  if (known.gone_until.size() >= limits_.gone_of_user) {
    // Without its description, what the queue did cannot be told.
    Owner& owner = owners_.at(subordinates_.OwnerOf(description.uid));
    const uint64_t end = known.gone_until.front().first;
    if (end > known.dropped)
      owner.dropped_until_ns = std::max(owner.dropped_until_ns, EndOf(known.events[end - 1 - known.dropped]));
    ForgetGone(known);
  }
  known.gone_until.emplace_back(known.end(), description.queue_id);
  gone_.emplace(description.queue_id, description);
} catch (const std::bad_alloc&) {
  // Its events are left out.
}

uint64_t History::Add(uid_t uid, const Event& event) {
  const uid_t owned_by = subordinates_.OwnerOf(uid);
  if (!owners_.contains(owned_by)) by_size_.emplace(0, owned_by);
  Owner& owner = owners_[owned_by];
  if (owner.users.size() >= limits_.of_user) {
    DropOldestOf(owned_by);
  } else if (size_ >= limits_.of_all) {
    // Whoever has most gives way, so nobody can push out what is remembered of the others.
    DropOldestOf(by_size_.rbegin()->second);
  }
  auto found = users_.find(uid);
  // A user of whom all was dropped may come again, and its numbers must not.
  if (found == users_.end()) found = users_.emplace(uid, User{.dropped = added_}).first;
  User& user = found->second;
  user.events.push_back(event);
  try {
    owner.users.push_back(uid);
  } catch (const std::bad_alloc&) {
    user.events.pop_back();
    throw;
  }
  ++size_;
  ++added_;
  Resized(owned_by, owner.users.size() - 1, owner.users.size());
  return user.end();
}

// Also of its subordinate users.
void History::DropOldestOf(uid_t uid) {
  Owner& owner = owners_.at(uid);
  const auto found = users_.find(owner.users.front());
  User& user = found->second;
  owner.dropped_until_ns = std::max(owner.dropped_until_ns, EndOf(user.events.front()));
  user.events.pop_front();
  ++user.dropped;
  while (!user.gone_until.empty() && user.gone_until.front().first <= user.dropped) ForgetGone(user);
  if (user.events.empty()) users_.erase(found);
  owner.users.pop_front();
  Resized(uid, owner.users.size() + 1, owner.users.size());
  --size_;
}

void History::Resized(uid_t uid, size_t before, size_t now) {
  auto entry = by_size_.extract({before, uid});
  entry.value() = {now, uid};
  by_size_.insert(std::move(entry));
}

void History::ForgetGone(User& user) {
  gone_.erase(user.gone_until.front().second);
  user.gone_until.pop_front();
}

const History::User* History::Find(uid_t uid) const {
  const auto found = users_.find(uid);
  return found == users_.end() ? nullptr : &found->second;
}

uint64_t History::EndOf(const Event& event) {
  return std::visit(
      [](const auto& known) {
        if constexpr (requires { known.span_ns; }) {
          return known.at_ns + known.span_ns;
        } else {
          return known.at_ns;
        }
      },
      event);
}

// Events are added when they end.
History::Reader History::ReaderOf(uid_t uid, const User& user, TimePoint since) const {
  const uint64_t since_ns = RecordedTime(began_, since);
  const auto first = std::partition_point(user.events.begin(), user.events.end(),
                                          [&](const Event& event) { return EndOf(event) < since_ns; });
  const auto skipped = static_cast<uint64_t>(first - user.events.begin());
  return {*this, uid, user.dropped + skipped, user.end()};
}

const History::Event* History::Reader::Next() {
  const User* user = history_->Find(uid_);
  const uint64_t first = user == nullptr ? end_ : std::min(user->dropped, end_);
  if (next_ < first) {
    lost_ += first - next_;
    next_ = first;
  }
  return next_ < end_ ? &user->events[next_++ - user->dropped] : nullptr;
}

TimePoint History::RemembersSince(uid_t uid) const {
  const auto owner = owners_.find(subordinates_.OwnerOf(uid));
  if (owner == owners_.end()) return began_;
  return began_ + Duration(static_cast<Duration::rep>(owner->second.dropped_until_ns));
}

}  // namespace xsched::server
