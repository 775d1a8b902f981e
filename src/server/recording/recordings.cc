#include "server/recording/recordings.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <new>
#include <utility>

#include "server/limits.h"
#include "server/process_state.h"

namespace xsched::server {

// Keeps what a track puts, with a description of the queue before it.
class Recordings::Sink final : public RecordSink {
 public:
  Sink(Recordings& recordings, Recording& recording, sched::QueueId queue, TimePoint now)
      : recordings_(recordings), recording_(recording), queue_(queue), now_(now) {}

  void Put(const RecordedEvent& event) override {
    if (!TryPut(event)) recording_.outbox.Drop(1);
  }

 private:
  bool TryPut(const RecordedEvent& event) try {
    if (!recording_.outbox.HasRoom()) return false;
    recording_.outbox.PutLoss(now_);
    if (!recordings_.Describe(recording_, queue_, now_)) return false;
    if (const auto* wait = std::get_if<ipc::RecordedWait>(&event);
        wait != nullptr && !recordings_.Describe(recording_, sched::QueueId{wait->waits_for}, now_)) {
      return true;  // it waits for a queue that is not recorded
    }
    if (const auto* hold = std::get_if<ipc::RecordedHold>(&event); hold != nullptr) {
      recording_.outbox.Put(WithKnownQueue(*hold));
    } else {
      recording_.outbox.Put(event);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  ipc::RecordedHold WithKnownQueue(ipc::RecordedHold hold) {
    if (!recordings_.DescribeOther(recording_, sched::QueueId{hold.because_of}, now_) &&
        !recording_.just_gone.contains(hold.because_of))
      hold.because_of = 0;
    return hold;
  }

  Recordings& recordings_;
  Recording& recording_;
  sched::QueueId queue_;
  TimePoint now_;
};

// Passes on what the track of the queue's process puts: to the history, and to each recording of the queue.
class Recordings::ProcessSink final : public RecordSink {
 public:
  ProcessSink(Recordings& recordings, const Queue& queue, TimePoint now)
      : recordings_(recordings), queue_(queue), now_(now) {}

  void Put(const RecordedEvent& event) override {
    recordings_.history_.Keep(queue_.id, queue_.agent->connection.peer.uid, event);
    for (auto& [connection, recording] : recordings_.recordings_) {
      if (!recording.queues.contains(static_cast<uint64_t>(queue_.id))) continue;
      Sink sink(recordings_, recording, queue_.id, now_);
      SinceSink(recording.began, sink).Put(event);
    }
  }

 private:
  Recordings& recordings_;
  const Queue& queue_;
  TimePoint now_;
};

// ---- requests ----

Recordings::Recording* Recordings::New(Connection& tool, TimePoint began, bool& sent) {
  const auto owner_of = [&](const Connection& of) { return parts_.subordinates.OwnerOf(of.peer.uid); };
  const auto same_user = [&](const auto& other) { return owner_of(*other.second.tool) == owner_of(tool); };
  const auto of_user = std::count_if(recordings_.begin(), recordings_.end(), same_user);
  if (static_cast<size_t>(of_user) >= kMaxRecordingsOfUser) {
    sent = tool.SendReply(kXSchedErrorNotAllowed, 0, "the user makes too many recordings already");
    return nullptr;
  }
  spdlog::debug("recording by pid {} (user {})", tool.peer.pid, tool.peer.uid);
  return &recordings_.emplace(tool.id, Recording{&tool, began, {began, dropped_}}).first->second;
}

bool Recordings::Start(Connection& tool, const ipc::Record& request, TimePoint now) {
  if (request.pid < 0)
    return tool.SendReply(kXSchedErrorInvalidValue, 0, "a process's number is not below 0");
  const auto found = recordings_.find(tool.id);
  bool sent = false;
  Recording* known = found != recordings_.end() ? &found->second : New(tool, now, sent);
  if (known == nullptr) return sent;
  Recording& recording = *known;
  if (recording.outbox.ends() || recording.processes.size() + recording.jobs.size() >= kMaxRecordedProcesses)
    return recording.outbox.PutReply(kXSchedErrorNotAllowed, 0, "the recording takes no more processes");
  recording.all |= request.pid == 0 && request.job == 0;
  if (request.pid != 0) {
    recording.processes[request.pid] = StartOf(request.pid);
  } else if (request.job != 0) {
    recording.jobs.insert(request.job);
  }
  const size_t before = recording.queues.size();
  size_t looked_at = parts_.agents.size();
  parts_.agents.ForEach([&](Agent& agent) {
    if (!Records(recording, agent)) return;
    looked_at += agent.queues.size();
    for (auto& [index, queue] : agent.queues) Track(recording, queue, /*is_new=*/false, now);
  });
  parts_.work.Charge(tool.peer.uid,
                     looked_at / WorkBudget::kLookedAtAsOne + recording.queues.size() - before);
  parts_.queues.ObserveNewlyTracked(now);
  return recording.outbox.PutReply(kXSchedSuccess, recording.queues.size(), "");
}

bool Recordings::Stop(Connection& tool, TimePoint now) {
  auto found = recordings_.find(tool.id);
  if (found == recordings_.end()) return tool.SendReply(kXSchedErrorInvalidValue, 0, "nothing is recorded");
  Recording& recording = found->second;
  if (recording.outbox.ends()) return true;
  recording.outbox.End();
  parts_.work.Charge(tool.peer.uid, recording.queues.size());
  ProcessTracks::Unfinished processes;
  for (auto& [id, tracked] : recording.queues) {
    Queue* queue = parts_.queues.Find(sched::QueueId{id});
    if (queue == nullptr) continue;
    parts_.queues.Observe(*queue, now);
    Sink sink(*this, recording, queue->id, now);
    tracked.track.Finish(reader_.Read(*queue, now), now, sink);
    SinceSink of_process(recording.began, sink);
    processes.Put(*queue, now, of_process);
  }
  recording.outbox.PutLoss(now);
  Release(recording, now);
  recording.outbox.PutLastReply(recording.outbox.dropped());
  return true;
}

bool Recordings::SendLast(Connection& tool, const ipc::RecordLast& request, TimePoint now) {
  parts_.work.Charge(tool.peer.uid, parts_.queues.size() / WorkBudget::kLookedAtAsOne);
  const auto longest = static_cast<uint64_t>((now - TimePoint()).count());
  const TimePoint since = now - Duration(static_cast<Duration::rep>(std::min(request.span_ns, longest)));
  bool sent = false;
  Recording* recording = New(tool, since, sent);
  if (recording == nullptr) return sent;
  recording->remembered.emplace(Remembered::Parts{history_, parts_.queues, reader_, parts_.access}, tool.peer,
                                since, now);
  recording->outbox.End();
  return true;
}

bool Recordings::Refuse(const Connection& tool) {
  return recordings_.at(tool.id).outbox.PutReply(kXSchedErrorNotAllowed, 0, "this connection records");
}

void Recordings::Remove(const Connection& tool, TimePoint now) {
  auto found = recordings_.find(tool.id);
  if (found == recordings_.end()) return;
  Release(found->second, now);
  recordings_.erase(found);
}

// ---- which queues ----

bool Recordings::Records(const Recording& recording, const Agent& agent) const {
  const Peer& owner = agent.connection.peer;
  const auto named = recording.processes.find(owner.pid);
  // Later, another process may have the number.
  const bool is_named = named != recording.processes.end() && !HasEnded(owner, named->second);
  return !recording.outbox.ends() && !agent.connection.closed &&
         parts_.access.MayTouch(recording.tool->peer, owner.uid) &&
         (recording.all || is_named || std::any_of(agent.jobs.begin(), agent.jobs.end(), [&](const Job& job) {
            return recording.jobs.contains(job.second);
          }));
}

void Recordings::Track(Recording& recording, Queue& queue, bool is_new, TimePoint now) {
  const auto id = static_cast<uint64_t>(queue.id);
  if (recording.queues.contains(id)) return;
  parts_.queues.Observe(queue, now);
  // What has ended since somebody looked last is not in this recording.
  const sched::QueueStats stats = reader_.StatsOf(queue, now);
  SeeProcess(queue, stats, now);
  // Commands that were launched while nobody waited for the queue may have retired without a report.
  const auto before =
      is_new || queue.words.tracked() ? QueueTrack::Before::kReported : QueueTrack::Before::kSkip;
  // First what may throw.
  Watched& watched = watched_[id];
  recording.queues.emplace(
      id, Tracked{{queue.id, recording.began, reader_.Read(queue, stats, now), before, now}});
  if (watched.recordings++ == 0) parts_.queues.SetRecorded(queue, true);
  Describe(recording, queue.id, now);
  Touched(queue);
}

void Recordings::Release(Recording& recording, TimePoint now) {
  for (auto& [id, tracked] : recording.queues) {
    auto watched = watched_.find(id);
    if (watched == watched_.end() || --watched->second.recordings > 0) continue;
    Unwatch(watched);
    if (Queue* queue = parts_.queues.Find(sched::QueueId{id})) parts_.queues.SetRecorded(*queue, false);
  }
  recording.queues.clear();
  recording.others.clear();
  parts_.queues.ObserveNewlyTracked(now);
}

void Recordings::Added(Queue& queue, TimePoint now) noexcept try {
  UsageMeter::Add(queue, reader_.StatsOf(queue, now));
  if (!recordings_.empty()) new_.push_back(queue.id);
} catch (const std::bad_alloc&) {
  forgot_some_ = true;
}

void Recordings::Touched(Queue& queue) noexcept try {
  if (queue.touched) return;
  touched_.push_back(queue.id);
  queue.touched = true;
} catch (const std::bad_alloc&) {
  forgot_some_ = true;
}

void Recordings::Gone(Queue& queue, TimePoint now) noexcept {
  const auto id = static_cast<uint64_t>(queue.id);
  const sched::QueueStats stats = reader_.StatsOf(queue, now);
  const QueueTrack::Reading reading = reader_.Read(queue, stats, now);
  parts_.usage.Remove(queue, stats);
  ProcessSink of_process(*this, queue, now);
  processes_.Gone(queue, now, of_process);
  if (history_.Gone(queue.id, reading, now))
    history_.KeepDescription(reader_.Describe(queue, history_.began(), now));
  for (auto& [connection, recording] : recordings_) {
    const ipc::RecordedEnd end = EndOf(recording, id, now);
    if (recording.others.erase(id) != 0) {
      NoteGone(recording, id);
      PutEndOfOther(recording, end);
    }
    auto found = recording.queues.find(id);
    if (found == recording.queues.end()) continue;
    if (found->second.described) NoteGone(recording, id);
    Sink sink(*this, recording, queue.id, now);
    found->second.track.Finish(reading, now, sink);
    sink.Put(end);
    recording.queues.erase(found);
  }
  if (const auto watched = watched_.find(id); watched != watched_.end()) Unwatch(watched);
}

void Recordings::Unwatch(std::unordered_map<uint64_t, Watched>::iterator watched) {
  looked_at_ -= watched->second.is_looked_at();
  watched_.erase(watched);
}

// Without memory for it, the hold names no queue.
void Recordings::NoteGone(Recording& recording, uint64_t id) noexcept try {
  recording.just_gone.insert(id);
} catch (const std::bad_alloc&) {
}

ipc::RecordedEnd Recordings::EndOf(const Recording& recording, uint64_t id, TimePoint now) {
  ipc::RecordedEnd end{};
  end.queue_id = id;
  end.at_ns = RecordedTime(recording.began, now);
  return end;
}

// The tool can forget it.
void Recordings::PutEndOfOther(Recording& recording, const ipc::RecordedEnd& end) noexcept try {
  if (recording.outbox.HasRoom()) return recording.outbox.Put(end);
  recording.outbox.Drop(1);
} catch (const std::bad_alloc&) {
  recording.outbox.Drop(1);
}

void Recordings::TakeNew(TimePoint now) {
  auto take = [&](Queue& queue) {
    for (auto& [connection, recording] : recordings_) {
      if (Records(recording, *queue.agent)) Track(recording, queue, /*is_new=*/true, now);
    }
  };
  for (sched::QueueId id : std::exchange(new_, {})) {
    if (Queue* queue = parts_.queues.Find(id)) take(*queue);
  }
  if (std::exchange(forgot_some_, false)) {
    parts_.agents.ForEach([&](Agent& agent) {
      for (auto& [index, queue] : agent.queues) {
        take(queue);
        Touched(queue);
      }
    });
  }
  parts_.queues.ObserveNewlyTracked(now);
}

// ---- what they do ----

TimePoint Recordings::Advance(TimePoint now) {
  if (recordings_.empty()) return kNever;
  TakeNew(now);
  if (now >= look_at_) Ask(now);
  return CloseUnreading(now);
}

// Whoever records a queue pays for it.
void Recordings::BeginToAsk() {
  for (const auto& [id, watched] : watched_) {
    if (watched.is_looked_at()) unasked_.push_back(id);
  }
  for (const auto& [connection, recording] : recordings_)
    parts_.work.Charge(recording.tool->peer.uid, std::min(recording.queues.size(), unasked_.size()));
}

void Recordings::Ask(TimePoint now) {
  if (unasked_.empty()) BeginToAsk();
  for (size_t asked = 0; asked < kMaxAskedPerRound && !unasked_.empty(); ++asked) {
    const uint64_t id = unasked_.back();
    unasked_.pop_back();
    const auto watched = watched_.find(id);
    Queue* queue = watched == watched_.end() ? nullptr : parts_.queues.Find(sched::QueueId{id});
    if (queue != nullptr) Ask(*queue, watched->second, now);
  }
  look_at_ = unasked_.empty() ? kNever : now;
}

// A queue is asked when launching has paused, for then the end of the last command must become known, and
// from time to time if it retires nothing.
void Recordings::Ask(Queue& queue, Watched& watched, TimePoint now) {
  const uint64_t submitted = watched.submitted;
  const uint64_t retired = watched.retired;
  parts_.queues.Observe(queue, now);
  LookAt(queue, now);
  if (!watched.busy || queue.words.held()) return;
  const bool paused = watched.submitted == submitted && watched.submitted != watched.asked_for;
  const bool silent = watched.retired == retired && now >= watched.asked_at + kAskEvery;
  if (!paused && !silent) return;
  watched.asked_for = watched.submitted;
  watched.asked_at = now;
  parts_.queues.Query(queue.id);
}

TimePoint Recordings::Look(TimePoint now) {
  for (sched::QueueId id : touched_) {
    Queue* queue = parts_.queues.Find(id);
    if (queue == nullptr) continue;
    queue->touched = false;
    LookAt(*queue, now);
  }
  touched_.clear();
  if (recordings_.empty()) return kNever;
  if (looked_at_ == 0) {
    look_at_ = kNever;
  } else if (look_at_ == kNever) {
    look_at_ = now + kLookEvery;
  }
  for (auto& [connection, recording] : recordings_) {
    recording.just_gone.clear();
    if (!recording.outbox.blocked()) Send(recording, now);
  }
  ForgetEnded();
  return new_.empty() && !forgot_some_ ? look_at_ : now;
}

void Recordings::SeeProcess(Queue& queue, const sched::QueueStats& stats, TimePoint now) noexcept {
  ProcessSink sink(*this, queue, now);
  processes_.See(queue, stats, now, sink);
}

void Recordings::LookAt(Queue& queue, TimePoint now) {
  const auto id = static_cast<uint64_t>(queue.id);
  const std::optional<sched::QueueStats> stats = parts_.scheduler.Stats(queue.id, now);
  if (!stats) return;  // the scheduler had no memory for it, so it runs unscheduled
  parts_.usage.See(queue, *stats, now);
  auto watched = watched_.find(id);
  if (watched == watched_.end() && !history_.is_kept()) return;
  SeeProcess(queue, *stats, now);
  const QueueTrack::Reading reading = reader_.Read(queue, *stats, now);
  history_.See(queue.id, queue.agent->connection.peer.uid, queue.words.tracked() || queue.words.held(),
               reading, now);
  if (watched == watched_.end()) return;
  looked_at_ -= watched->second.is_looked_at();
  watched->second.busy = reading.busy();
  watched->second.counts = reading.counted && !reading.reports;
  looked_at_ += watched->second.is_looked_at();
  watched->second.submitted = reading.submitted;
  watched->second.retired = reading.retired;
  for (auto& [connection, recording] : recordings_) {
    auto found = recording.queues.find(id);
    if (found == recording.queues.end()) continue;
    Tracked& tracked = found->second;
    tracked.described &= reader_.HintsOf(queue) == tracked.hints && queue.level == tracked.level;
    if (!tracked.described && recording.outbox.HasRoom()) Describe(recording, queue.id, now);
    // Now, because it may be gone when the hold ends.
    if (reading.because_of != sched::QueueId{}) DescribeOther(recording, reading.because_of, now);
    Sink sink(*this, recording, queue.id, now);
    tracked.track.See(reading, now, sink);
  }
}

// ---- what tools are sent ----

bool Recordings::Describe(Recording& recording, sched::QueueId id, TimePoint now) {
  auto found = recording.queues.find(static_cast<uint64_t>(id));
  const Queue* queue = parts_.queues.Find(id);
  if (found == recording.queues.end() || queue == nullptr) return false;
  Tracked& tracked = found->second;
  if (tracked.described) return true;
  if (!recording.outbox.HasRoom()) return false;
  recording.outbox.Put(reader_.Describe(*queue, recording.began, now));
  tracked.described = true;
  tracked.hints = reader_.HintsOf(*queue);
  tracked.level = queue->level;
  return true;
}

bool Recordings::DescribeOther(Recording& recording, sched::QueueId id, TimePoint now) {
  const auto number = static_cast<uint64_t>(id);
  if (recording.others.contains(number) || Describe(recording, id, now)) return true;
  const Queue* queue = recording.queues.contains(number) ? nullptr : parts_.queues.Find(id);
  if (queue == nullptr || !parts_.access.MayTouch(recording.tool->peer, queue->agent->connection.peer.uid))
    return false;
  if (!recording.outbox.HasRoom()) return false;
  recording.others.insert(number);
  recording.outbox.Put(reader_.Describe(*queue, recording.began, now));
  return true;
}

void Recordings::SendUnread(const Connection& tool, TimePoint now) {
  auto found = recordings_.find(tool.id);
  if (found == recordings_.end() || !found->second.outbox.blocked()) return;
  Send(found->second, now);
  ForgetEnded();
}

void Recordings::Send(Recording& recording, TimePoint now) {
  Connection& tool = *recording.tool;
  if (tool.closed) return;
  const bool was_blocked = recording.outbox.blocked();
  // Events that are left out cost time as well.
  const auto refill = [&] {
    while (recording.remembered && recording.outbox.empty() && !parts_.work.IsSpent(tool.peer.uid)) {
      parts_.work.Charge(tool.peer.uid, 1);
      if (!recording.remembered->PutNext(recording.outbox, now)) recording.remembered.reset();
    }
    return recording.remembered || !recording.outbox.empty();
  };
  if (recording.outbox.Send(tool, parts_.work, refill, now) == Sent::kFailed)
    return parts_.connections.Close(tool, nullptr);
  const bool is_blocked = recording.outbox.blocked();
  if (is_blocked == was_blocked) return;
  if (!parts_.connections.Watch(tool, is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN))
    parts_.connections.Close(tool, "it cannot be watched");
}

TimePoint Recordings::CloseUnreading(TimePoint now) {
  TimePoint next = look_at_;
  for (auto& [connection, recording] : recordings_) {
    if (!recording.outbox.blocked() || recording.tool->closed) continue;
    const TimePoint deadline = recording.outbox.blocked_since() + kUnreadRecordTimeout;
    if (now >= deadline) parts_.connections.Close(*recording.tool, "a recording left unread");
    next = std::min(next, std::max(deadline, now));
  }
  return next;
}

// The tool is then as any other.
void Recordings::ForgetEnded() {
  std::erase_if(recordings_, [](const auto& entry) {
    const Recording& recording = entry.second;
    return recording.outbox.ends() && !recording.remembered && recording.outbox.empty();
  });
}

}  // namespace xsched::server
