#include "server/recording/history.h"

#include <algorithm>
#include <new>

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
      history_.Add(queue_.uid, Event(event));
      queue_.has_events = true;
    }
  }

  History& history_;
  Followed& queue_;
};

void History::See(sched::QueueId id, uid_t uid, bool reports, const QueueTrack::Reading& reading,
                  TimePoint now) noexcept try {
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

bool History::Gone(sched::QueueId id, const QueueTrack::Reading& reading, TimePoint now) noexcept {
  const auto found = queues_.find(static_cast<uint64_t>(id));
  if (found == queues_.end()) return false;
  See(id, found->second.uid, /*reports=*/false, reading, now);
  const bool has_events = found->second.has_events;
  queues_.erase(found);
  return has_events;
}

void History::KeepDescription(const ipc::RecordedQueue& description) noexcept try {
  const auto user = users_.find({subordinates_.OwnerOf(description.uid), description.uid});
  if (user == users_.end()) return;
  User& known = user->second;
  if (known.gone_until.size() >= limits_.gone_of_user) {
    // Without its description, what the queue did cannot be told.
    const uint64_t end = known.gone_until.front().first;
    if (end > known.dropped)
      known.dropped_until_ns = std::max(known.dropped_until_ns, EndOf(known.events[end - 1 - known.dropped]));
    ForgetGone(known);
  }
  known.gone_until.emplace_back(known.dropped + known.events.size(), description.queue_id);
  known.gone.emplace(description.queue_id, description);
} catch (const std::bad_alloc&) {
  // Its events are left out.
}

void History::Add(uid_t uid, const Event& event) {
  const uid_t owner = subordinates_.OwnerOf(uid);
  User& user = users_[{owner, uid}];
  size_t& size = sizes_[owner];
  if (size >= limits_.of_user) {
    DropOldestOf(owner);
  } else if (size_ >= limits_.of_all) {
    // Whoever has most gives way, so nobody can push out what is remembered of the others.
    DropOldestOf(std::max_element(sizes_.begin(), sizes_.end(), [](const auto& one, const auto& other) {
                   return one.second < other.second;
                 })->first);
  }
  user.events.push_back(event);
  ++size;
  ++size_;
}

// Of the owner and the subordinate users, it is again the one that has most.
void History::DropOldestOf(uid_t owner) {
  User& user = std::max_element(users_.lower_bound({owner, 0}), users_.upper_bound({owner, ~uid_t{0}}),
                                [](const auto& one, const auto& other) {
                                  return one.second.events.size() < other.second.events.size();
                                })
                   ->second;
  user.dropped_until_ns = std::max(user.dropped_until_ns, EndOf(user.events.front()));
  user.events.pop_front();
  ++user.dropped;
  --sizes_[owner];
  --size_;
  while (!user.gone_until.empty() && user.gone_until.front().first <= user.dropped) ForgetGone(user);
}

void History::ForgetGone(User& user) {
  user.gone.erase(user.gone_until.front().second);
  user.gone_until.pop_front();
}

const History::User* History::Find(uid_t uid) const {
  const auto found = users_.find({subordinates_.OwnerOf(uid), uid});
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
  return {*this, uid, user.dropped + skipped, user.dropped + user.events.size()};
}

const History::Event* History::Reader::Next() {
  const User* user = history_->Find(uid_);
  if (user == nullptr) return nullptr;
  if (next_ < user->dropped) {
    const uint64_t first = std::min(user->dropped, end_);
    lost_ += first - next_;
    next_ = first;
  }
  return next_ < end_ ? &user->events[next_++ - user->dropped] : nullptr;
}

TimePoint History::RemembersSince(uid_t uid) const {
  const User* user = Find(uid);
  if (user == nullptr) return began_;
  return began_ + Duration(static_cast<Duration::rep>(user->dropped_until_ns));
}

}  // namespace xsched::server
