// What the scheduler remembers of one queue and of one device. Of one process on one device:
// process_slices.h.
#pragma once

#include "base/array.h"
#include "sched/core/claims.h"
#include "sched/core/pauses.h"
#include "sched/core/process_slices.h"
#include "sched/core/scheduler.h"
#include "sched/core/silence.h"
#include "sched/core/watch.h"

namespace xsched::sched {

inline constexpr int kMaxDependencies = 4;

struct DeviceRecord;
struct QueueRecord;

struct WaitRecord {
  Dependency dependency;
  QueueRecord* owner;  // valid during a decision
};

// What is counted for a queue as time passes.
enum class Charge : uint8_t {
  kNothing,
  kService,
  kGift,  // service that the policy did not decide: in a window, for another queue that waits for it, or by
          // time slices alone
  kWaiting,
};

// Every decision reads the first members of every queue: they lie together.
struct QueueRecord {
  QueueId id;
  ProcessRecord* process;
  DeviceRecord* device;

  QueueState state = QueueState::kIdle;
  bool absent = false;
  bool newly_ready = false;  // became ready, or got other hints, since the last decision
  bool running = false;      // the last decision let it run, and it was ready
  bool run = false;          // valid during a decision
  bool chosen = false;       // … by the policy
  bool can_hold = false;     // by the policy and the hints of the device's queues: it may hold another,
  bool can_be_held = false;  // … or be held by another,
  bool held_by_own = false;  // … even by one of its own process
  bool sliceable = false;
  bool awaited = false;          // another queue waits for this one
  bool let_run_by_gift = false;  // … and not by the policy for its own claim since it was last held
  Charge charge = Charge::kNothing;
  Control control;                       // as last reported
  Priority priority = PRIORITY_DEFAULT;  // effective; as of the last decision
  Hints hints;

  // What the policy is shown.
  TimePoint ready_since{};
  TimePoint running_since{};  // valid while running
  Duration service{};         // up to the last change of `charge`; likewise
  Duration gifts{};           // part of it: the policy does not count them
  Duration service_mark{};    // the device's service clock at that change
  PolicyState policy_state;

  int wait_count = 0;
  uint64_t submitted = 0;
  uint64_t retired = 0;
  uint32_t moves = 0;  // as last read
  // Held without a chance to work in between: since then (valid while held), at this number of retired
  // commands.
  TimePoint held_since{kNever};
  uint64_t retired_when_held = 0;
  Watch watch;
  Pauses pauses;

  // It was held or put off the device then, and nothing has been heard since it runs again: what it reports
  // may have happened before. kNever: neither.
  TimePoint stopped_at{kNever};
  TimePoint absent_since{};  // valid while absent
  TimePoint waiting_mark{};  // the time of the last change of `charge`
  Duration waiting{};        // up to then
  size_t hints_number = 0;   // of the device's distinct hints
  uint64_t holds = 0;
  uint64_t incidents = 0;
  WaitRecord waits[kMaxDependencies] = {};  // for other queues, of any device; as far as they have not passed

  // Does the policy see it?
  bool IsEligible() const { return state != QueueState::kIdle && !absent; }
  bool Unfinished() const { return submitted > retired; }
};

inline Claim ClaimOf(const QueueRecord& queue) {
  Claim claim{true, queue.hints, queue.device};
  claim.hints.priority = queue.priority;
  return claim;
}

struct DeviceRecord {
  DeviceId id;
  Array<QueueRecord*> queues;  // in order of their ids
  Array<QueueView> views;      // of the decision under way; kept for its memory
  PolicyState policy_state;
  ProcessSlices slices;
  bool dirty = true;              // something has changed that a decision may depend on
  bool rivals_changed = true;     // … can_hold and can_be_held, too
  bool due = false;               // it takes part in the decision under way
  bool observed = false;          // … and what time has changed is known
  bool given = false;             // somebody was given the turn on it (Turns::Begin)
  TimePoint held_since = kNever;  // the first of those that are held was held then; kNever: nobody is
  Silence silence;
  TimePoint decide_at = kNever;
  TimePoint policy_at = kNever;  // the policy wants to be asked again
  TimePoint slices_at = kNever;  // … and the slices

  Claim window;        // the most urgent queue for which the watchdog lets everybody run
  Claim lends;         // … and on other devices as well
  Claim released_for;  // the queue, of any device, for which everybody runs here

  QueueId leader{};  // the queue with the best claim of those that run
  Claim leader_claim;

  // The device time that a queue has received which has run from the beginning; queues that run side by side
  // divide it.
  Duration service_clock{};
  int sharing = 0;  // how many run
  TimePoint accounted_at{};

  void RivalsChanged() {
    dirty = rivals_changed = true;
    slices.Changed();
  }
};

}  // namespace xsched::sched
