// A policy decides who runs on one device. It is a pure function of what it is shown: no clock, no threads,
// no I/O. What it remembers from one decision to the next is kept for it (PolicyWithState).
//
// Each policy is one file of src/sched/policy: CONTRIBUTING.md, "Add a policy".
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "sched/core/types.h"

namespace xsched::sched {

// The hints that a policy reads.
struct HintsRead {
  bool priority = false;
  bool utilization = false;
  bool deadline = false;
  bool laxity = false;
  bool timeslice = false;  // one for all queues
};

// What people are told of a policy. Command lines, error messages, completions and manual pages take it from
// here.
struct PolicyInfo {
  XPolicyType type;
  const char* name;     // short, in capitals: "HPF"
  const char* summary;  // one line: what it does
  HintsRead hints;
};

// What a policy remembers of one queue, of one process on a device, or of one device: bytes that mean
// something to that policy alone. They are 0 for what is new, and after a change of policy.
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
  static constexpr size_t kSize = 64;
  alignas(8) std::byte bytes_[kSize] = {};
};

// One ready queue, as a policy sees it.
struct QueueView {
  QueueId id;
  ProcessId process;
  Hints hints;
  // hints.priority, raised to that of the most urgent ready queue that waits for this one.
  Priority priority;
  TimePoint ready_since;
  bool running;                // the last decision let it run
  TimePoint running_since;     // valid while `running`
  Duration service;            // device time received by decisions of a policy since it was created
  bool newly_ready;            // it was not here at the last decision, or had other hints
  PolicyState* state;          // of the queue
  PolicyState* process_state;  // of its process on this device: the same for all queues of one process
  // Out: may it run?
  bool run;
};

// One device, as a policy sees it.
struct DeviceView {
  TimePoint now;
  Duration timeslice;
  std::span<QueueView> ready;  // its ready queues, in order of their ids
  PolicyState* state;          // of the device
};

// One process on a device that divides its time between processes, as a policy sees it.
struct ProcessView {
  ProcessId id;
  Priority priority;        // the highest of its queues'
  Utilization utilization;  // likewise
  // Out: how long it may keep the device at a stretch while other processes want it.
  Duration slice;
};

inline constexpr Duration kDriversSlice{0};
// None: the process is off the device, for another has its turn.
inline constexpr Duration kNoSlice{-1};
// So short that whoever else has work has the device at once. Two ready processes with it make no progress
// (measured on H200), so they take turns.
inline constexpr Duration kShortestSlice = std::chrono::microseconds(1);

// What slices are for.
enum class Division {
  kNone,           // everybody keeps the driver's
  kBesideHolding,  // they serve who is let run sooner; the policy holds queues all the same
  kAlone,          // they alone divide the device: nobody is held
};

class Policy {
 public:
  explicit constexpr Policy(const PolicyInfo& info) : info_(info) {}

  const PolicyInfo& info() const { return info_; }
  XPolicyType type() const { return info_.type; }

  // Sets `run` of every view of the device's ready queues.
  // Returns when to be asked again if nothing happens until then; kNever: not at all.
  virtual TimePoint Decide(const DeviceView& device) const = 0;

  // May `victim` ever be held because of `rival`, both on one device, whatever they do? A queue that no
  // other can hold costs nothing: it is not gated.
  virtual bool CanHold(const Hints& victim, const Hints& rival) const = 0;

  // Sets `slice` of every view, of the two or more processes of one device.
  virtual Division Divide(std::span<ProcessView>) const { return Division::kNone; }

 protected:
  ~Policy() = default;  // policies are constants: nobody destroys one

 private:
  PolicyInfo info_;
};

// A policy that remembers something of a queue, of a process on a device, or of a device. Each state is a
// plain struct of the policy's own, for which zero bytes are a beginning.
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

// Which policy is used where nobody has chosen one.
inline constexpr XPolicyType kDefaultPolicy = kPolicyHighestPriorityFirst;

// ---- the policies of this build: those that have a file in src/sched/policy ----

// Yields a policy: a constant with static life.
using PolicyGetter = const Policy& (*)();
// In the order of their files' names; the default is one of them.
std::span<const PolicyGetter> Policies();
// The policy of that type; null: there is none of that type.
const Policy* FindPolicy(XPolicyType type);
// The same by the type's number, which may be any: one that is no value of the enumeration must not become
// one.
const Policy* FindPolicyByNumber(uint32_t number);
// By its short name, in any case ("HPF", "hpf"); null when there is none.
const Policy* FindPolicyByName(const char* name);
// "HPF", …: of each policy of this build, and of all types of XSched 1.2. "?" for an unknown type.
const char* PolicyName(XPolicyType type);

}  // namespace xsched::sched
