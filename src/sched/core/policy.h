// A policy decides who runs on one device. It is a pure function of what it is shown: no clock, no
// threads, no I/O, no memory of its own beyond the word it keeps in each queue's view.
#pragma once

#include <span>

#include "sched/core/types.h"

namespace xsched::sched {

// One ready queue, as a policy sees it.
struct QueueView {
  QueueId id;
  ProcessId process;
  Hints hints;
  // hints.priority, raised to that of the most urgent ready queue that waits for this one.
  Priority priority;
  TimePoint ready_since;
  bool running;             // the last decision let it run
  TimePoint running_since;  // valid while `running`
  Duration service;         // device time received by decisions of a policy since it was created
  bool newly_ready;         // it was not here at the last decision, or had other hints
  // What the policy itself remembers of this queue; 0 for a new queue and after a change of policy. Written
  // back.
  double policy_state;
  // Out: may it run?
  bool run;
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
  virtual XPolicyType type() const = 0;

  // Sets `run` of every view. `ready` holds the ready queues of one device, in order of their ids.
  // Returns when to be asked again if nothing happens until then; kNever: not at all.
  virtual TimePoint Decide(TimePoint now, Duration timeslice, std::span<QueueView> ready) const = 0;

  // May `victim` ever be held because of `rival`, both on one device, whatever they do? A queue that no
  // other can hold costs nothing: it is not gated.
  virtual bool CanHold(const Hints& victim, const Hints& rival) const = 0;

  // Sets `slice` of every view, of the two or more processes of one device.
  virtual Division Divide(std::span<ProcessView>) const { return Division::kNone; }

 protected:
  ~Policy() = default;  // policies are constants: nobody destroys one
};

// The policy of that type, a constant with static life; null: there is none of that type.
const Policy* FindPolicy(XPolicyType type);
// By its short name, in any case ("HPF", "UP"); null when there is none.
const Policy* FindPolicyByName(const char* name);
// "HPF", …; "?" for an unknown type.
const char* PolicyName(XPolicyType type);

}  // namespace xsched::sched
