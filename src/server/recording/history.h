// What became of the queues lately, for questions after the fact (kRecordLast): the newest bursts, holds and
// waits of each user, and the time slices, turns and memory of processes, up to a limit. Subordinate users
// have that of their owner. Whatever users there are, an event costs as much.
//
// It makes no queue report anything. So it follows a queue only while the queue reports anyway: while others
// wait for it, or it waits for others.
//
//   Recordings: a queue was touched --See--> QueueTrack --> the user's events, of which the oldest are
//   dropped
//
// Pure; time and readings in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "server/limits.h"
#include "server/recording/queue_track.h"
#include "server/subordinate_users.h"

namespace xsched::server {

class History {
 public:
  // Times count from `began`.
  using Event = std::variant<ipc::RecordedBurst, ipc::RecordedHold, ipc::RecordedWait, ipc::RecordedSlice,
                             ipc::RecordedTurn, ipc::RecordedMemory>;

  struct Limits {
    size_t of_user = kMaxHistoryOfUser;  // events; 0: nothing is remembered
    size_t of_all = kMaxHistory;
    size_t gone_of_user = kMaxGoneInHistory;  // queues
  };
  explicit History(TimePoint began, SubordinateUsers subordinates = {})
      : History(began, Limits{}, std::move(subordinates)) {}
  History(TimePoint began, const Limits& limits, SubordinateUsers subordinates = {})
      : began_(began), limits_(limits), subordinates_(std::move(subordinates)) {}

  // `reports`: the queue reports when it becomes ready and idle.
  void See(sched::QueueId id, uid_t uid, bool reports, const QueueTrack::Reading& reading,
           TimePoint now) noexcept;
  // What a ProcessTrack puts, which names this queue. It is remembered even if the queue reports nothing: a
  // process can have time slices without holding others or being held.
  void Keep(sched::QueueId id, uid_t uid, const RecordedEvent& event) noexcept;
  // The queue is about to be forgotten. True: events of it are remembered, so call KeepDescription.
  bool Gone(sched::QueueId id, const QueueTrack::Reading& reading, TimePoint now) noexcept;
  void KeepDescription(const ipc::RecordedQueue& description) noexcept;
  // Of a queue of these users that is gone. Null: it is not remembered.
  template <typename Visible>
  const ipc::RecordedQueue* Description(sched::QueueId id, Visible&& visible) const {
    const auto found = gone_.find(static_cast<uint64_t>(id));
    return found != gone_.end() && visible(uid_t{found->second.uid}) ? &found->second : nullptr;
  }

  // Reads the events of one user, oldest first, while others are added.
  class Reader {
   public:
    // Null: there are no more.
    const Event* Next();
    // How many were dropped before they were read.
    uint64_t lost() const { return lost_; }
    uid_t uid() const { return uid_; }

   private:
    friend class History;
    Reader(const History& history, uid_t uid, uint64_t next, uint64_t end)
        : history_(&history), uid_(uid), next_(next), end_(end) {}

    const History* history_;
    uid_t uid_;
    uint64_t next_;
    uint64_t end_;
    uint64_t lost_ = 0;
  };
  // What has ended since `since`, of each user for whom visible(uid) is true.
  template <typename Visible>
  std::vector<Reader> Read(TimePoint since, Visible&& visible) const {
    std::vector<Reader> readers;
    for (const auto& [uid, user] : users_) {
      if (visible(uid)) readers.push_back(ReaderOf(uid, user, since));
    }
    return readers;
  }
  // Calls put(event) for what goes on, as if it ended now. `read(id)`: the queue's reading, if visible.
  template <typename ReadQueue>
  void Unfinished(TimePoint now, RecordSink& sink, ReadQueue&& read) const {
    for (const auto& [id, followed] : queues_) {
      if (!followed.track) continue;
      const std::optional<QueueTrack::Reading> reading = read(sched::QueueId{id}, followed.uid);
      if (reading) QueueTrack(*followed.track).Finish(*reading, now, sink);
    }
  }
  // From when on everything is remembered of the user.
  TimePoint RemembersSince(uid_t uid) const;

  // False: nothing is remembered, and so nothing has to be read for it.
  bool is_kept() const { return limits_.of_user != 0; }
  TimePoint began() const { return began_; }
  // Of how many users there is anything.
  size_t known_users() const { return users_.size(); }

 private:
  struct Followed {
    uid_t uid;
    std::optional<QueueTrack> track;  // while it reports
    uint64_t events_until = 0;        // the number after that of its last event; 0: it has none
  };
  struct User {
    std::deque<Event> events;
    uint64_t dropped = 0;  // the number of the first event
    // Queues that are gone, with the number before which there may be events of them.
    std::deque<std::pair<uint64_t, uint64_t>> gone_until;

    uint64_t end() const { return dropped + events.size(); }
  };
  struct Owner {
    std::deque<uid_t> users;        // of the events, in their order
    uint64_t dropped_until_ns = 0;  // up to then, events are dropped or of queues that nobody can describe
  };
  class Sink;

  static uint64_t EndOf(const Event& event);
  Reader ReaderOf(uid_t uid, const User& user, TimePoint since) const;
  // Returns the number after that of the event.
  uint64_t Add(uid_t uid, const Event& event);
  // Null: nothing was remembered of the user.
  const User* Find(uid_t uid) const;
  void DropOldestOf(uid_t uid);
  void Resized(uid_t uid, size_t before, size_t now);
  void ForgetGone(User& user);

  const TimePoint began_;
  const Limits limits_;
  const SubordinateUsers subordinates_;
  size_t size_ = 0;
  uint64_t added_ = 0;                          // since the beginning
  std::map<uid_t, Owner> owners_;               // also those of which everything is dropped
  std::set<std::pair<size_t, uid_t>> by_size_;  // the owners, with the numbers of their events
  std::map<uid_t, User> users_;                 // those that have events
  std::unordered_map<uint64_t, ipc::RecordedQueue> gone_;
  std::unordered_map<uint64_t, Followed> queues_;  // those of which something may be remembered
};

}  // namespace xsched::server
