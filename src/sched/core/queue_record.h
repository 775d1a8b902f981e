// What the scheduler remembers of one queue and of one device. process_slices.h has the record of one process
// on one device.
#pragma once

#include <algorithm>

#include "base/array.h"
#include "sched/core/claims.h"
#include "sched/core/launch_bound.h"
#include "sched/core/pauses.h"
#include "sched/core/process_slices.h"
#include "sched/core/requests.h"
#include "sched/core/scheduler.h"
#include "sched/core/silence.h"
#include "sched/core/tenants.h"
#include "sched/core/watch.h"

namespace xsched::sched {

inline constexpr int kMaxDependencies = 4;

struct DeviceRecord;
struct QueueRecord;

struct WaitRecord {
  Dependency dependency;
  QueueRecord* owner;  // valid during a decision
};

// What the passing time is accounted as, for a queue.
enum class Charge : uint8_t {
  kNothing,
  kWaiting,
  // From here on, service:
  kService,
  // and service that the policy did not decide:
  kGift,  // in a window, or where time slices alone divide the device
  kLent,  // because a queue that runs waits for this one. It is service of the process, of which both are.
};

// Every decision reads the first members of every queue, so they are adjacent.
// Which other queues of the device a queue can ever hold, and which can hold it (rivals.h).
struct Rivalry {
  bool can_hold = false;
  bool can_be_held = false;
  bool holds_own = false;    // one of its own process
  bool held_by_own = false;  // likewise

  bool operator==(const Rivalry&) const = default;
};

struct QueueRecord {
  QueueId id;
  ProcessRecord* process;
  DeviceRecord* device;

  QueueState state = QueueState::kIdle;
  bool absent = false;
  bool active = false;  // the next decision considers it (active_queues.h)
  // A bit for each policy that has not seen it since it became ready, or since hints changed that it reads.
  uint8_t newly_ready = 0;
  bool running = false;          // the last decision let it run, and it was ready
  bool was_chosen = false;       // likewise, by the policy's choice
  bool run = false;              // valid during a decision
  bool chosen = false;           // likewise: it runs by the policy's choice
  bool runs_for_own = false;     // likewise, if it runs and is not chosen: for another queue of its process
  Rivalry rivalry;               // with these hints
  bool limited = false;          // valid during and after a decision: limited_until is to come
  bool overruns = false;         // held, and the device still has something of it
  bool awaited = false;          // another queue waits for this one
  bool let_run_by_gift = false;  // since it was last held, it has run only for another queue or in a window
  Charge charge = Charge::kNothing;
  Control control;  // as last reported
  QueueTraits traits;
  TimePoint limited_until{};             // by a policy: it may not run before that
  Duration left_of_limit{};              // valid during a decision: QueueView::left_of_limit
  Priority priority = PRIORITY_DEFAULT;  // effective; as of the last decision
  Hints hints;
  ProcessFacts facts;  // of its process

  // Policies see these, or what follows from them.
  TimePoint ready_since{};
  TimePoint finished_at{};
  TimePoint running_since{};  // valid while running
  TimePoint chosen_since{};   // valid while was_chosen
  Duration service{};         // up to the last change of `charge`
  Duration gifts{};           // the part of `service` that the policy did not decide
  Duration lent{};            // the part of `gifts` that counts for its process and tenant
  Duration service_mark{};    // the device's service clock at that change

  int wait_count = 0;
  uint64_t submitted = 0;
  uint64_t retired = 0;
  // As last read.
  uint32_t moves = 0;
  uint32_t drains = 0;
  uint32_t found_idle = 0;
  Requests requests;
  // Valid while held. It has been held since then, without a chance to work in between, and had retired so
  // many commands at that time.
  TimePoint held_since{kNever};
  uint64_t retired_when_held = 0;
  // The last one (overruns.h).
  struct {
    TimePoint since{kNever};
    TimePoint asked_at{};
    TimePoint awaited_again_at{};  // until then, others do not wait for the end of its overruns
    Duration usual{};              // how long they last; 0: none has ended yet
  } overrun;
  Watch watch;
  Pauses pauses;
  LaunchBound launches;

  // When it was held or put off the device, if it has not reported since it runs again: what it reports first
  // may have happened before that time. kNever: it has reported.
  TimePoint stopped_at{kNever};
  TimePoint absent_since{};  // valid while absent
  TimePoint waiting_mark{};  // the time of the last change of `charge`
  Duration waiting{};        // up to that time
  size_t hints_number = 0;   // index of its hints among the device's distinct hints
  uint64_t holds = 0;
  uint64_t incidents = 0;
  WaitRecord waits[kMaxDependencies] = {};  // its dependencies on queues of any device that have not passed
  PolicyState policy_states[kMostPolicies];

  // True if the policy sees it.
  bool IsEligible() const { return state != QueueState::kIdle && !absent; }
  bool Unfinished() const { return submitted > retired; }
};

inline constexpr uint8_t kNewToAllPolicies = (1 << kMostPolicies) - 1;

// The queue's hints and effective priority, as a policy sees them that decides about queues, processes or
// tenants.
inline const Hints& HintsFor(const QueueRecord& queue, Granularity by) {
  return by == Granularity::kQueue     ? queue.hints
         : by == Granularity::kProcess ? queue.process->hints
                                       : queue.process->tenant->hints;
}
inline Priority PriorityFor(const QueueRecord& queue, Granularity by) {
  return by == Granularity::kQueue ? queue.priority : std::max(queue.priority, HintsFor(queue, by).priority);
}
inline bool InheritsPriority(const QueueRecord& queue, Granularity by) {
  return queue.priority > HintsFor(queue, by).priority;
}

inline Claim ClaimOf(const QueueRecord& queue) {
  Claim claim{.valid = true, .hints = {queue.hints, queue.process->hints, {}}, .device = queue.device};
  claim.hints.own.priority = PriorityFor(queue, Granularity::kQueue);
  claim.hints.of_process.priority = PriorityFor(queue, Granularity::kProcess);
  if (queue.process->tenant->has_hints) {
    claim.hints.of_tenant = queue.process->tenant->hints;
    claim.hints.of_tenant.priority = PriorityFor(queue, Granularity::kTenant);
  }
  return claim;
}

// The claim of a queue whose window acts on other devices as well (windows.h).
struct WideWindow {
  ProcessId process;
  TenantId tenant;
  Claim claim;

  bool operator==(const WideWindow&) const = default;
};

// What the control of an idle queue depends on, beside itself.
struct ControlInputs {
  bool charges_overruns = false;
  bool keeps_busy = false;
  bool replace_holding = false;
  bool beside_holding = false;
  bool cut_short = false;
  bool held_elsewhere = false;  // a queue of another device is held for long
  bool shared = false;          // several tenants have queues here, so what each receives is counted

  bool operator==(const ControlInputs&) const = default;
};

struct DeviceRecord {
  DeviceId id;
  Array<QueueRecord*> queues;  // in order of their ids
  Array<QueueRecord*> active;  // those that a decision considers, in the same order; has room for all
  Array<QueueView> views;      // of the current decision; kept for its memory
  PolicyState policy_states[kMostPolicies];
  ProcessSlices slices;
  Array<TenantRecord*> tenants;         // of its processes, in the order of their arrival
  Array<TenantRecord*> former_tenants;  // without processes, in the order in which they left
  bool dirty = true;                    // something has changed that a decision may depend on
  bool rivals_changed = true;           // the rivalries of its queues are out of date
  bool due = false;                     // it takes part in the current decision
  bool observed = false;                // likewise, and Observe was called for it
  bool asks = false;                    // likewise, and policies decide which of its queues run
  bool watched = false;                 // likewise, and the watch of one of its queues does not rest
  bool waits = false;                   // a queue of it waits for another
  bool waits_across = false;      // likewise for one of another device, or one of that waits for one of it
  bool forgets = false;           // valid during a decision: its waits are read anew
  bool given = false;             // a party was given the turn on it (Turns::Begin)
  bool taken = false;             // something is taken from a queue with work; as of the last decision
  bool asked = false;             // a running queue is asked for its progress; likewise
  TimePoint held_since = kNever;  // when the queue that is held longest was held; kNever: none is held
  Silence silence;
  // When to decide again: whatever the watches say; because of a watch or of the silence. And when a running
  // queue is to be asked for its progress.
  TimePoint decide_at = kNever;
  TimePoint watch_at = kNever;
  TimePoint ask_at = kNever;
  TimePoint policy_at = kNever;  // the policy wants to be asked again
  TimePoint slices_at = kNever;  // the slices must be observed again

  Claim window;  // the most urgent queue of this device that has an open window
  // The most urgent queue of each process that has one that acts on other devices as well, in the order of
  // the processes. And whether these have changed since WideWindows::Collect.
  Array<WideWindow> wide_windows;
  bool wide_changed = false;
  Claim released_for;             // the queue, of any device, in whose window the queues of this device run
  TimePoint release_at = kNever;  // decide that anew
  TimePoint short_window_since = TimePoint::min();  // the last one (windows.cc)

  ControlInputs control_inputs;  // as of the last decision

  // The queue with the best claim of those that run, as of the last decision. Null: none runs, or it is gone.
  const QueueRecord* leader = nullptr;
  // If a queue waits for the end of another one's overrun: the overrunning one, and the one that waits.
  const QueueRecord* awaited = nullptr;
  const QueueRecord* awaits = nullptr;

  // The device time that a queue would have received if it had run since the beginning. Queues that run at
  // the same time divide the device's time.
  Duration service_clock{};
  int sharing = 0;  // how many queues run
  TimePoint accounted_at{};

  DeviceRecord() = default;
  ~DeviceRecord() {
    for (TenantRecord* tenant : tenants) delete tenant;
    for (TenantRecord* tenant : former_tenants) delete tenant;
  }
  DeviceRecord(const DeviceRecord&) = delete;
  DeviceRecord& operator=(const DeviceRecord&) = delete;

  void RivalsChanged() {
    dirty = rivals_changed = true;
    slices.Changed();
  }
  // The index of the first queue whose id is not smaller.
  size_t PlaceOf(QueueId wanted) const {
    auto before = [](const QueueRecord* queue, QueueId than) { return queue->id < than; };
    return static_cast<size_t>(std::lower_bound(queues.begin(), queues.end(), wanted, before) -
                               queues.begin());
  }
  // Null: there is no such queue here.
  QueueRecord* Find(QueueId wanted) const {
    const size_t at = PlaceOf(wanted);
    return at < queues.size() && queues[at]->id == wanted ? queues[at] : nullptr;
  }
};

// True if other processes may run in the gaps that the queue leaves: it is bound by launches, and time slices
// give the device back to it soon.
inline bool LeavesGaps(const QueueRecord& queue, TimePoint now) {
  return queue.launches.is_bound() && !queue.rivalry.holds_own && queue.launches.LeavesGaps(now) &&
         queue.device->slices.beside_holding() && !queue.device->slices.sharing();
}

// How long the queue lingers when it has retired everything.
inline Duration GraceOf(const QueueRecord& queue, const SchedulerConfig& config) {
  const ProcessSlices& slices = queue.device->slices;
  const bool costs_a_change =
      !queue.rivalry.holds_own && slices.beside_holding() && (queue.rivalry.can_hold || slices.turns_only());
  return costs_a_change ? std::max(config.grace, config.process_grace) : config.grace;
}

}  // namespace xsched::sched
