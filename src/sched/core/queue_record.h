// What the scheduler remembers of one queue and of one device.
#pragma once

#include "base/array.h"
#include "sched/core/process_slices.h"
#include "sched/core/scheduler.h"

namespace xsched::sched {

inline constexpr int kMaxDependencies = 4;

struct DeviceRecord;
struct QueueRecord;

struct WaitRecord {
  Dependency dependency;
  QueueRecord* owner;  // valid during a decision
};

struct QueueRecord {
  QueueId id;
  ProcessId process;
  DeviceRecord* device;
  Hints hints;
  bool sliceable = false;

  QueueState state = QueueState::kIdle;
  bool absent = false;
  bool stalled = false;
  bool fresh = false;        // became ready, or got other hints, since the last decision
  bool running = false;      // the last decision let it run, and it was ready
  bool can_hold = false;     // by the policy and the hints of the device's queues: it may hold another,
  bool can_be_held = false;  // … or be held by another,
  bool held_by_own = false;  // … even by one of its own process
  Control control;           // as last reported
  uint64_t submitted = 0;
  uint64_t retired = 0;

  TimePoint ready_since{};
  TimePoint idle_since{};     // valid unless ready
  TimePoint running_since{};  // valid while running

  // Pauses in a row that were longer than the grace period; after so many, the next one is taken for long
  // from its beginning.
  int long_pauses = 0;
  int trusted_after = 4;

  // Questions for its progress, while somebody waits for it.
  TimePoint ask_at{};          // the next one
  Duration ask_delay{};        // from that to the one after it
  TimePoint asked_at{kNever};  // the first that is not answered by progress; kNever: none
  Duration slowest_answer{};

  double note = 0;
  Priority priority = PRIORITY_DEFAULT;     // effective; valid during a decision
  bool run = false;                         // likewise
  WaitRecord waits[kMaxDependencies] = {};  // for other queues, of any device; as far as they have not passed
  int wait_count = 0;
  bool awaited = false;  // another queue waits for this one

  Duration service{};
  Duration waiting{};
  uint64_t holds = 0;
  uint64_t incidents = 0;

  // Does the policy see it?
  bool Takes() const { return state != QueueState::kIdle && !absent && !stalled; }
  bool Unfinished() const { return submitted > retired; }
};

struct DeviceRecord {
  DeviceId id;
  Array<QueueRecord*> queues;  // in order of their ids
  Array<QueueView> views;      // of the decision under way; kept for its memory
  ProcessSlices slices;
  bool dirty = true;           // something has changed that a decision may depend on
  bool rivals_changed = true;  // … can_hold and can_be_held, too
  bool due = false;            // it takes part in the decision under way
  bool anybody_held = false;
  TimePoint decide_at = kNever;
  TimePoint accounted_at{};

  void RivalsChanged() {
    dirty = rivals_changed = true;
    slices.Changed();
  }
};

}  // namespace xsched::sched
