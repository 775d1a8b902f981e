// What a recording knows of one queue: since when it has had work, is held, and waits for another queue.
// Pure: readings and the time in, messages for the recording's tool out.
//
//                  it has work: a burst begins
//        [idle] -------------------------------> [busy] --+ after 100 ms, when something has retired:
//           ^                                      |  ^   | the burst is cut, and another one continues it
//           +--------------------------------------+  +---+
//                  all has retired: the burst ends
//
// Counters are differences of readings, so the bursts of a queue have all of its commands, and each one once.
//
// The client counts the queue's bursts (`counted`), so several that ended between two readings are known.
// While nobody waits for the queue, it reports nothing. Then the counters also tell when a burst began and
// ended, and several are one record. While it reports, the time of the reading is as good, and is the
// server's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "ipc/control_access.h"
#include "ipc/messages.h"
#include "sched/core/scheduler.h"
#include "server/ended_bursts.h"
#include "server/recording/recorded_event.h"

namespace xsched::server {

class QueueTrack {
 public:
  static constexpr Duration kCutAfter = std::chrono::milliseconds(100);
  // A burst's commands in flight are put at most once in this time.
  static constexpr Duration kCountEvery = std::chrono::milliseconds(10);

  // What is read of the queue at one time. The times and counters never decrease, except for those of a
  // client that writes nonsense.
  struct Reading {
    uint64_t submitted = 0;
    uint64_t retired = 0;
    sched::WaitReason why = sched::WaitReason::kNone;  // why it does not run
    sched::QueueId because_of{};                       // likewise; 0: because of no other queue
    Duration service{};                                // device time that it was charged for
    Duration waiting{};                                // time during which it was held or off the device
    sched::Dependency waits_for{};                     // until 0: for none
    std::optional<ipc::Bursts> counted;                // if the client counts them
    bool reports = false;                              // likewise: it also reports

    bool busy() const { return submitted > retired; }
  };

  // What becomes of a queue that has work, and has not yet reported what has retired.
  enum class Before : uint8_t {
    kReported,  // it has reported it
    kSkip,      // it is recorded from its first report on
    kTime,      // its burst had begun before, and is followed from now on, with the commands from its first
                // report on
  };
  // `began`: when the recording did. `reading`: at `now`.
  QueueTrack(sched::QueueId id, TimePoint began, const Reading& reading, Before before, TimePoint now);

  void See(const Reading& reading, TimePoint now, RecordSink& sink);
  // The queue is gone, or the recording ends: what goes on is put as it is.
  void Finish(const Reading& reading, TimePoint now, RecordSink& sink);

 private:
  struct Hold {
    sched::WaitReason why = sched::WaitReason::kNone;
    sched::QueueId because_of{};

    bool operator==(const Hold&) const = default;
  };

  static Hold HoldOf(const Reading& reading);
  void Start(const Reading& reading, TimePoint now);
  // False: nothing is recorded yet.
  bool SeeFirstReport(const Reading& reading, TimePoint now);
  void SeeHold(const Hold& hold, TimePoint now, RecordSink& sink);
  void SeeWait(const Reading& reading, TimePoint now, RecordSink& sink);
  void SeeBusy(const Reading& reading, bool has_begun, TimePoint now, RecordSink& sink);
  void SeeCounted(const Reading& reading, TimePoint now, RecordSink& sink);
  // The bursts that have ended since the last reading, of which there is at least one: of a queue that
  // reports, and of one that does not.
  void SeeEach(const Reading& reading, const EndedBursts& ended, TimePoint now, RecordSink& sink);
  void SeeFirstEnd(const Reading& reading, EndedBursts ended, TimePoint now, RecordSink& sink);
  void SeeEnded(const Reading& reading, const EndedBursts& ended, TimePoint now, RecordSink& sink);
  void SeeInFlight(const Reading& reading, TimePoint now, RecordSink& sink);
  bool HasBegun(const Reading& reading) const;
  Reading PartOf(const Reading& reading, uint32_t bursts) const;
  void BeginBurst(TimePoint began);
  TimePoint LastBegan(const Reading& reading, TimePoint now) const;
  ipc::RecordedBurst BurstUntil(const Reading& reading, TimePoint end) const;
  void PutBurst(const Reading& reading, TimePoint now, uint32_t flags, RecordSink& sink, uint32_t bursts = 1);

  sched::QueueId id_;
  TimePoint began_;
  Reading last_;
  Before before_;
  bool busy_ = false;
  bool continues_ = false;  // the burst is the rest of one that was cut, or had begun before
  TimePoint busy_since_{};
  TimePoint burst_began_{};  // if the burst continues one that was cut: when that one began
  TimePoint seen_at_{};      // when the queue was last seen
  TimePoint ended_at_{};     // the last burst that was counted
  bool awaits_end_ = false;  // all has retired, and the end of the burst is not counted yet
  SeenEnd seen_end_;
  Reading at_begin_;  // of the burst: the last reading before it
  Hold hold_;         // while it has work and does not run
  TimePoint held_since_{};
  sched::Dependency waited_for_{};
  uint64_t in_flight_ = 0;  // as put last, in this burst
  TimePoint count_at_{};    // not before
};

}  // namespace xsched::server
