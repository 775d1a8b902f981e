// The recordings that tools make of queues: what the queues were given, when, and how long it took. It reads
// what the server knows anyway, and changes nothing but that a recorded queue reports when it becomes ready
// and idle, and is asked for its progress from time to time. Without any recording, it keeps the history
// (history.h), for tools that ask for what was, and counts what was used (usage_meter.h).
//
// No tool can delay a round: what it has not read is kept up to a limit, and dropped and counted beyond it. A
// tool that reads nothing for long is disconnected.
//
//   Queues --(QueueWatcher)--> queues that were touched --Look--> QueueTrack --> RecordingOutbox --> the tool
//                                                           |   ProcessTrack            ^
//                                                           +----> History --Remembered-+ kRecordLast
//                                                           +----> UsageMeter
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/connections.h"
#include "server/queues.h"
#include "server/recording/history.h"
#include "server/recording/process_tracks.h"
#include "server/recording/queue_reader.h"
#include "server/recording/queue_track.h"
#include "server/recording/recording_outbox.h"
#include "server/recording/remembered.h"
#include "server/subordinate_users.h"
#include "server/usage_meter.h"
#include "server/work_budget.h"

namespace xsched::server {

class Recordings final : QueueWatcher {
 public:
  // How often queues with work are looked at, if they do not report by themselves.
  static constexpr Duration kLookEvery = std::chrono::milliseconds(2);
  // How often one that retires nothing is asked for its progress.
  static constexpr Duration kAskEvery = std::chrono::milliseconds(20);

  // What the recordings are about.
  struct Parts {
    Connections& connections;
    Agents& agents;
    Queues& queues;
    sched::Scheduler& scheduler;
    const AccessRules& access;
    UsageMeter& usage;
    WorkBudget& work;
    const SubordinateUsers& subordinates;
  };
  Recordings(const Parts& parts, TimePoint now, const History::Limits& history = {})
      : parts_(parts), reader_(parts.scheduler), history_(now, history, parts.subordinates) {
    parts_.queues.SetWatcher(this);
  }
  ~Recordings() { parts_.queues.SetWatcher(nullptr); }
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  // ---- requests of tools; false: the tool is to be disconnected ----

  [[nodiscard]] bool Start(Connection& tool, const ipc::Record& request, TimePoint now);
  [[nodiscard]] bool Stop(Connection& tool, TimePoint now);
  // Sends what was.
  [[nodiscard]] bool SendLast(Connection& tool, const ipc::RecordLast& request, TimePoint now);
  // Answers any other request of a tool that records.
  [[nodiscard]] bool Refuse(const Connection& tool);

  bool IsRecording(const Connection& tool) const { return recordings_.contains(tool.id); }
  // Call if there may be room for more in the tool's buffer.
  void SendUnread(const Connection& tool, TimePoint now);
  void Remove(const Connection& tool, TimePoint now);
  // How many records tools did not read in time, since the server began.
  uint64_t dropped() const { return dropped_; }

  // Before a decision: takes in new queues, and asks those with work. Closes the connections of tools that
  // read nothing. Returns when to call it again.
  TimePoint Advance(TimePoint now);
  // After a decision: records what has changed. Returns when to call Advance.
  TimePoint Look(TimePoint now);

 private:
  struct Tracked {
    QueueTrack track;
    // As the tool was told last.
    bool described = false;
    sched::Hints hints{};
    uint32_t level = 0;
  };
  struct Recording {
    Connection* tool;
    TimePoint began;
    RecordingOutbox outbox;
    bool all = false;                     // of all processes
    std::map<pid_t, uint64_t> processes;  // and when they began (StartOf)
    std::set<uint64_t> jobs;
    std::map<uint64_t, Tracked> queues;
    std::set<uint64_t> others;     // not recorded, but described, because recorded ones waited for them
    std::set<uint64_t> just_gone;  // described, and gone since the last look: holds that end may name them
    std::optional<Remembered> remembered;  // what is sent, if it is an answer to kRecordLast
  };
  // A queue that is recorded, by one recording or by several.
  struct Watched {
    int recordings = 0;
    bool busy = false;    // as last looked at
    bool counts = false;  // it counts its bursts, and reports nothing by itself
    uint64_t submitted = 0;
    uint64_t retired = 0;
    uint64_t asked_for = 0;  // what had been submitted when it was last asked
    TimePoint asked_at{};

    bool is_looked_at() const { return busy || counts; }
  };
  class Sink;
  class ProcessSink;

  void Added(Queue& queue, TimePoint now) noexcept override;
  void Touched(Queue& queue) noexcept override;
  void Gone(Queue& queue, TimePoint now) noexcept override;

  // Null: its user has too many already, and the tool got this answer in `sent`.
  Recording* New(Connection& tool, TimePoint began, bool& sent);
  bool Records(const Recording& recording, const Agent& agent) const;
  void Track(Recording& recording, Queue& queue, bool is_new, TimePoint now);
  void TakeNew(TimePoint now);
  void BeginToAsk();
  void Ask(TimePoint now);
  void Ask(Queue& queue, Watched& watched, TimePoint now);
  void Unwatch(std::unordered_map<uint64_t, Watched>::iterator watched);
  void LookAt(Queue& queue, TimePoint now);
  void SeeProcess(Queue& queue, const sched::QueueStats& stats, TimePoint now) noexcept;
  // False: there is no room.
  bool Describe(Recording& recording, sched::QueueId id, TimePoint now);
  // Likewise of a queue that the recording may not contain. False: also if the tool may not see it.
  bool DescribeOther(Recording& recording, sched::QueueId id, TimePoint now);
  void Send(Recording& recording, TimePoint now);
  TimePoint CloseUnreading(TimePoint now);
  static void NoteGone(Recording& recording, uint64_t id) noexcept;
  static ipc::RecordedEnd EndOf(const Recording& recording, uint64_t id, TimePoint now);
  static void PutEndOfOther(Recording& recording, const ipc::RecordedEnd& end) noexcept;
  void Release(Recording& recording, TimePoint now);
  void ForgetEnded();

  Parts parts_;
  QueueReader reader_;
  History history_;
  ProcessTracks processes_;
  std::map<uint64_t, Recording> recordings_;  // by the tool's connection
  std::unordered_map<uint64_t, Watched> watched_;
  size_t looked_at_ = 0;           // how many of these are
  std::vector<uint64_t> unasked_;  // those that are still to be asked, in the next rounds
  std::vector<sched::QueueId> new_;
  std::vector<sched::QueueId> touched_;
  bool forgot_some_ = false;  // there was no memory for one of these lists
  TimePoint look_at_ = kNever;
  uint64_t dropped_ = 0;
};

}  // namespace xsched::server
