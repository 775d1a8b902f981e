// A policy decides which queues of one device run. It is a pure function of what it is shown: no clock, no
// threads, no I/O. The scheduler keeps the policy's state from one decision to the next (PolicyWithState).
//
// Each policy is one file of src/sched/policy: CONTRIBUTING.md, "Add a policy".
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "sched/core/types.h"

namespace xsched::sched {

// No policy gives the device away for less: a change of turns would cost more than the turn is worth.
inline constexpr Duration kShortestTurn = std::chrono::microseconds(TIMESLICE_MIN);

// Where one process at a time is on the device, a process comes there only a part of a millisecond after it
// was let run. A turn of less than this may be over before it has begun.
inline constexpr Duration kLeastTurnOnDevice = std::chrono::milliseconds(2);

// The hints that a policy reads.
struct HintsRead {
  bool priority = false;
  bool utilization = false;
  bool deadline = false;
  bool laxity = false;
  bool weight = false;
  bool reservation = false;
  bool latency_target = false;
  bool floor = false;
  bool timeslice = false;      // one for all queues
  bool at_a_time = false;      // likewise: DeviceView::at_a_time
  bool cpu_priority = false;   // ProcessFacts
  bool window_active = false;  // likewise
};

// What makes a queue's claim better than another's.
enum class ClaimBy {
  kOther,     // something else, or claims do not say who runs next
  kPriority,  // its priority: a queue never waits for one with a lower priority
  kShare,     // whether it has a share (utilization): queues without one wait for all that have one
};

// What a policy decides about: single queues, processes with all of their queues, or tenants with all of
// their processes. Queues of a process that wait for each other should not hold each other.
enum class Granularity : uint8_t { kQueue, kProcess, kTenant };

// Whose queues a policy compares: those of one device, or those of all devices together.
enum class Scope : uint8_t { kDevice, kAllDevices };

// A policy's name and description. Command lines, error messages, completions and manual pages take them from
// here.
struct PolicyInfo {
  XPolicyType type;
  const char* name;     // short, in capitals: "HPF"
  const char* summary;  // one line: what it does
  HintsRead hints;
  // The simulator checks who runs next accordingly (sim/promises.h). kOther: it does not.
  ClaimBy claim = ClaimBy::kOther;
  Granularity granularity = Granularity::kQueue;  // unless the user chooses another one (PolicySetting)
  Scope scope = Scope::kDevice;
  // It reads QueueView::process_weight, process_service, tenant_weight and tenant_service,
  // ProcessView::hints.
  bool sees_processes = false;
  // It decides by what each has received. So a held queue is charged for what it still does, and the next one
  // begins only when that has ended (overruns.h).
  bool charges_overruns = false;
  // Beside that, it divides the device's time, and nobody is urgent: it does not matter to the others if a
  // held queue first ends what it has begun. So more may be in flight (Control::keeps_busy).
  bool keeps_busy = false;
  // It keeps queues from running even if the device is unused (FindLimits).
  bool has_limits = false;
  // Asked again before its time, with nothing new but the time and what was received, it decides the same and
  // remembers the same. So it need not be asked then.
  bool steady = false;
};

// What a policy remembers of one queue, of one process on a device, or of one device. Only that policy knows
// what the bytes mean. They are 0 at the beginning, and after a change of policy.
class PolicyState {
 public:
  template <typename State>
  State& As() {
    static_assert(sizeof(State) <= kSize && alignof(State) <= alignof(PolicyState),
                  "a larger state needs a larger PolicyState::kSize");
    static_assert(std::is_trivially_copyable_v<State> && std::is_trivially_destructible_v<State>,
                  "a state begins as zero bytes, and is forgotten without notice");
    return *std::launder(reinterpret_cast<State*>(bytes_));
  }
  void Clear() { *this = PolicyState{}; }

 private:
  static constexpr size_t kSize = 128;
  alignas(8) std::byte bytes_[kSize] = {};
};

// One ready queue, as a policy sees it. If the policy decides about processes or tenants: all ready queues of
// one of them together, each value as that of a queue that does what all of them do.
struct QueueView {
  QueueId id;  // of a process: that of its first ready queue
  ProcessId process;
  // Of a process: the most demanding of each (CombineHints), also of queues that are not ready. Of a tenant:
  // likewise, but weight, utilization and reservation are those of its share. Deadline, laxity and latency
  // target are those of the ready queue whose request is due first; none if no ready queue has any. But a
  // queue without a target counts as one with the shortest target of all.
  Hints hints;
  // hints.priority, raised to that of the most urgent ready queue that waits for this one.
  Priority priority;
  // Since when it has its oldest unfinished work, as far as known (requests.h). Of a process or tenant:
  // of the queue whose request is due first by a deadline, laxity or target, or of all.
  TimePoint ready_since;
  // When a request of it last ended: all was done that belongs to it. Not counted are requests during which
  // it was absent.
  TimePoint finished_at;
  // The last decision let it run, by the policy's own choice: not because another queue waits for it, and not
  // in a window of the watchdog.
  bool running;
  TimePoint running_since;  // valid while `running`
  Duration service;         // device time received by decisions of a policy since it was created
  // It leaves the device idle for most of the time in which it has work. Others may run in these gaps: time
  // slices give the device back to it soon.
  bool leaves_gaps;
  bool newly_ready;    // since this policy last saw it, it became ready, or hints changed that it reads
  PolicyState* state;  // of the queue
  PolicyState* process_state;  // of its process on this device: the same for all queues of one process
  ProcessFacts facts;          // of its process
  // Of its process on this device with all of its queues, also of those that are not ready: the highest
  // weight; what they have received, also those that are gone. Valid if PolicyInfo::sees_processes.
  Weight process_weight = WEIGHT_DEFAULT;
  Duration process_service{};
  // Likewise of its tenant on this device: the tenant's own weight, and what its processes have received.
  PolicyState* tenant_state = nullptr;
  Weight tenant_weight = WEIGHT_DEFAULT;
  Duration tenant_service{};
  // Of a queue, process or tenant, as `service`: also what no policy decided, in windows and for queues that
  // wait for this one. A limit counts it.
  Duration service_in_all{};
  // Out: may it run?
  bool run;
  // Out, of FindLimits: until then it may not run even if the device is unused, because of a limit that was
  // asked for. In the past: there is no such limit.
  TimePoint limited_until{};
  // Out, of FindLimits: after so much more time it has used up its limit. Duration::max(): it has none.
  Duration left_of_limit = Duration::max();
};

inline constexpr size_t kMostAtATime = 64;

// One device, as a policy sees it.
struct DeviceView {
  TimePoint now;
  Duration timeslice;
  size_t at_a_time;            // how many queues a policy that counts them lets run; 1 … kMostAtATime
  std::span<QueueView> ready;  // its ready queues, in order of their ids
  PolicyState* state;          // of the device
  // Scope::kAllDevices: the highest priority of the ready queues of all devices.
  Priority highest_of_all = PRIORITY_NO_EXECUTE;
  // kLeastTurnOnDevice where one process at a time is on the device; otherwise zero.
  Duration least_turn{};
};

// One process on a device that divides its time between processes, as a policy sees it.
struct ProcessView {
  ProcessId id;
  TenantId tenant{};
  Priority priority;               // the highest of its queues'
  Utilization utilization;         // likewise
  Weight weight = WEIGHT_DEFAULT;  // likewise
  ProcessFacts facts;
  Hints hints{};  // of all of its queues together; valid if PolicyInfo::sees_processes
  // Out: how long it may keep the device at a stretch while other processes want it.
  Duration slice;
};

inline constexpr Duration kDriversSlice{0};
// None: the process is off the device, because another process has its turn.
inline constexpr Duration kNoSlice{-1};
// So short that any other process with work gets the device at once. Two ready processes with this slice make
// no progress (measured on an H200), so they take turns.
inline constexpr Duration kShortestSlice = std::chrono::microseconds(1);

// So long that a process keeps the device until it has no more work.
inline constexpr Duration kLongSlice = std::chrono::milliseconds(100);

// What slices are for.
enum class Division {
  kNone,           // every process keeps the driver's slice
  kBesideHolding,  // the policy holds queues, and slices give the device to the others sooner
  kAlone,          // slices alone divide the device: no queue is held
};

// For policies that let one queue or process run at a time: of the processes with work, only that one is on
// the device. Another would use up slices at its closed gates.
inline Division OnlyTheRunningOne(std::span<ProcessView> processes) {
  for (ProcessView& process : processes) process.slice = kShortestSlice;
  return Division::kBesideHolding;
}

class Policy {
 public:
  explicit constexpr Policy(const PolicyInfo& info) : info_(info) {}

  const PolicyInfo& info() const { return info_; }
  XPolicyType type() const { return info_.type; }

  // Before each decision, if PolicyInfo::has_limits: sets `limited_until` of all ready queues, whatever the
  // other policies of a chain make of them. Decide is then shown only those that may run. So nobody waits for
  // a queue that has used up its limit. Returns when to be asked again if nothing happens until then; kNever:
  // not necessary.
  virtual TimePoint FindLimits(const DeviceView&) const { return kNever; }

  // Sets `run` of every view of the device's ready queues: at least one must run, on this device or, with
  // Scope::kAllDevices, on another one. Returns when to be asked again, likewise.
  virtual TimePoint Decide(const DeviceView& device) const = 0;

  // Can `victim` ever be held because of `rival` on the same device, whatever they do? A queue that no other
  // can hold costs nothing: it is not gated.
  virtual bool CanHold(const Hints& victim, const Hints& rival) const = 0;

  // Sets `slice` of every view, of the two or more processes of one device. With kNone, none is set.
  virtual Division Divide(std::span<ProcessView>) const { return Division::kNone; }

 protected:
  ~Policy() = default;  // policies are constants, and never destroyed

 private:
  PolicyInfo info_;
};

// A policy that keeps state for a queue, for a process on a device, or for a device. Each state is a plain
// struct that the policy defines. It begins as zero bytes.
struct NoState {};
template <typename QueueState, typename ProcessState = NoState, typename DeviceState = NoState>
class PolicyWithState : public Policy {
 public:
  using Policy::Policy;

 protected:
  ~PolicyWithState() = default;

  static QueueState& StateOf(const QueueView& queue) { return queue.state->As<QueueState>(); }
  static ProcessState& ProcessStateOf(const QueueView& queue) {
    return queue.process_state->As<ProcessState>();
  }
  static DeviceState& StateOf(const DeviceView& device) { return device.state->As<DeviceState>(); }
};

// The policy that is used if none is chosen.
inline constexpr XPolicyType kDefaultPolicy = kPolicyHighestPriorityFirst;

// ---- the policies of this build: those that have a file in src/sched/policy ----

// Returns a policy, which is a constant with static lifetime.
using PolicyGetter = const Policy& (*)();
// In the order of their files' names; the default is one of them.
std::span<const PolicyGetter> Policies();
// The policy of that type; null: there is none of that type.
const Policy* FindPolicy(XPolicyType type);
// The same for any number. It is compared as a number, and never cast to XPolicyType: it may not be a value
// of it.
const Policy* FindPolicyByNumber(uint32_t number);
// By its short name, in any case ("HPF", "hpf"); null when there is none.
const Policy* FindPolicyByName(const char* name);
// "HPF", …: of each policy of this build, and of all types of XSched 1.2. "?" for an unknown type.
const char* PolicyName(XPolicyType type);

}  // namespace xsched::sched
