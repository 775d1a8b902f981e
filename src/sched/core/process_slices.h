// Time slices of whole processes, where a device's own scheduler divides its time between them (level 3).
//
// They are set when processes or hints change, never per task, because a call takes the driver a fraction of
// a millisecond. The policy decides how long each process may keep the device (Policy::Divide). If two
// processes with the shortest slice both want the device, it only switches between them. A process that waits
// at a gate, or retires nothing, also wants it. So of the ready processes with the shortest slice
//   - one has its turn at a time, and the others are taken off the device (Turns decides whose turn it is);
//   - or they share the device in the driver's slices, if the commands of all of them are so short that gates
//     alone stop them soon enough, and if they do more that way (sharing.h).
// In these cases the policy's slices would make a process stand still:
//   - The watchdog lets every queue run.
//   - A process with the shortest slice may run, and one with a longer slice has work that is not urgent. The
//     latter is on the device as well, at least at its gate.
//   - An absent queue has work. Its process may be on the device, and may not act on new slices.
// Then there are no turns, no process is off the device, and each with work has at least the driver's slice.
//
// A process with a long slice may be bound by launches, and leave gaps (launch_bound.h). Then those with the
// shortest slice have kGapSlice instead, because with the shortest one, the device would do little more than
// change between processes.
//
// Processes for which the policy leaves the driver's slice, while others have the shortest one, are equally
// urgent. They keep it, or have a long one and so the device in the order in which they come (in_order.h).
//
// Jobs that meet on two devices may take turns on only one of them, because a more urgent process is there. A
// rank whose job has not its turn would spin on the other device, and wait for the one that is off. So the
// processes of the other device take turns as well, as long as those of its *leader* do.
//
// Of one device. Pure.
#pragma once

#include <span>

#include "base/array.h"
#include "sched/core/chosen_queues.h"
#include "sched/core/in_order.h"
#include "sched/core/policy_setting.h"
#include "sched/core/scheduler.h"
#include "sched/core/sharing.h"

namespace xsched::sched {

struct DeviceRecord;
struct Party;
struct QueueRecord;
struct TenantRecord;
class Turns;

// For how long it is remembered of a process or tenant without queues what it has received. That is longer
// than a limit keeps one from running because of what it has used up (policy/reserve.cc).
inline constexpr Duration kKeepAccount = std::chrono::seconds(4);

// What queues have received of a device.
struct Received {
  Duration for_shares{};  // what counts for shares (ServiceForProcess)
  Duration in_all{};      // what counts for limits: also what no policy decided

  Received& operator+=(const Received& other) {
    for_shares += other.for_shares;
    in_all += other.in_all;
    return *this;
  }
  Received& operator-=(const Received& other) {
    for_shares -= other.for_shares;
    in_all -= other.in_all;
    return *this;
  }
};

// One process on one device.
struct ProcessRecord {
  ProcessId id{};
  DeviceRecord* device = nullptr;
  TenantRecord* tenant = nullptr;  // null: it has never had a queue
  size_t queues = 0;        // may be 0 for a while: some programs make and release streams all the time
  TimePoint empty_since{};  // valid without queues
  TimePoint awaited_at{};   // when it was last found that others wait for overruns of its queues
  bool ended = false;
  bool takes_part = false;   // it is one of ProcessSlices::processes
  uint64_t hints_held = 0;   // a bit for each of the device's distinct hints that its queues have
  uint64_t hints_twice = 0;  // a bit for each that more than one of its queues has

  Duration slice = kDriversSlice;     // by the policy
  Duration reported = kDriversSlice;  // as last reported; turns, sharing and windows may change the policy's
  bool has_turn = false;              // as last reported
  Priority priority = PRIORITY_DEFAULT;  // the highest of its queues'; as of the last Refresh
  Utilization utilization = UTILIZATION_DEFAULT;
  Weight weight = WEIGHT_DEFAULT;
  TimePoint off_since{};  // valid while off()
  ProcessFacts facts;
  PolicyState policy_states[kMostPolicies];

  // For policies that decide about processes (views.h).
  PolicyState view_states[kMostPolicies];  // what they remember of the process in place of a queue
  Hints hints;                             // of all of its queues together; as of the last change of rivals
  bool has_hints = false;                  // valid during that change
  size_t counted_in = 0;                   // likewise: the last group of hints in which it was counted
  TimePoint finished_at{};                 // when one of its queues last had nothing left to do
  Received received_by_others;             // by its queues that are not active now, or were removed
  Received received;                       // valid during a decision
  QueueView* view = nullptr;               // likewise
  ChosenQueues chosen;
  double guaranteed = 0;  // valid during Scheduler::GuaranteedWith
  bool contends = false;  // valid during Windows::Release: it has work that the policy sees
  const QueueRecord* wide_window = nullptr;  // valid during Windows::Find

  // Valid during and after a decision.
  bool ready = false;
  bool competes = false;     // ready, and may run
  bool on = false;           // competes, and is on the device: with the shortest slice, or sharing
  bool on_others = false;    // the process is, or was, on other devices as well
  bool absent_work = false;  // a queue of it is absent and has work
  bool leaves_gaps = false;  // all of its ready queues leave gaps

  Party* party = nullptr;  // the processes that have their turns with this one; only with the shortest slice
  ProcessRecord* next_in_party = nullptr;
  Party* left_party = nullptr;  // between Turns::Detach and Turns::Join: its former party

  // For the average length of its commands: what it has retired, and the device's time that it has received,
  // since the last comparison.
  uint64_t retired = 0;            // of all of its queues
  uint64_t retired_of_others = 0;  // of those that are not active now, or were removed
  uint64_t seen_retired = 0;
  Duration on_device{};
  bool compared = false;        // false: its time was not counted since the last comparison
  TimePoint weigh_at = kNever;  // it was asked what it has retired; compare then
  bool ask = false;
  bool short_commands = false;  // so short that gates alone stop it soon enough
  OwnRequests requests;         // see InOrder
  Pace in_turns;                // see Sharing
  Pace in_sharing;

  bool off() const { return reported == kNoSlice; }
};

class ProcessSlices {
 public:
  ProcessSlices() = default;
  ~ProcessSlices();
  ProcessSlices(const ProcessSlices&) = delete;
  ProcessSlices& operator=(const ProcessSlices&) = delete;

  // The record of `process` on this device, made if there is none. Null: out of memory.
  ProcessRecord* Get(ProcessId process, DeviceRecord& device);
  ProcessRecord* Find(ProcessId process) const;  // null: it is not here
  // A queue has come, a process has gone, or hints or the policy have changed: Refresh is due.
  void Changed() { refresh_at_ = TimePoint{}; }
  // A queue of `process` was removed. Refresh is due in a while, because another queue may come soon.
  // `keeps_account`: a policy remembers what the process has received, also while it has no queue.
  void QueueGone(ProcessRecord& process, bool keeps_account, TimePoint now);
  TimePoint refresh_at() const { return refresh_at_; }
  // Decides the slices anew; `queues` are all of the device's. Processes without queues take no part any
  // more. They are forgotten when they have ended, or have had none for a while.
  void Refresh(const PolicySetting& setting, size_t at_a_time, DeviceId device,
               std::span<QueueRecord* const> queues, Turns& turns, TimePoint now, ControlSink& sink);

  // Jobs that are on both devices take turns on `leader`, by the policy. Null: there is no such device.
  // If this changes, Refresh is due.
  void Follow(const DeviceRecord* leader);
  // How many processes of this device have one of their job on `other` that has the shortest slice there.
  size_t Meeting(const DeviceRecord& other, const Turns& turns);
  // True if a device that the policy does not divide could follow this one.
  bool leads() const { return division_ == Division::kBesideHolding && !follows_ && turn_takers_ > 1; }
  // True if this device could follow another one.
  bool may_follow() const { return (none() || follows_) && can_be_divided(); }
  // True if it follows another device, which takes turns now and did not at the last Observe, or vice versa.
  bool is_behind() const;

  // True if all processes have the driver's slice.
  bool none() const { return division_ == Division::kNone; }
  // True if a held process is taken off the device promptly, whatever it has in flight.
  bool cut_short() const { return !none() && !sharing_ && !released_; }
  // True if the processes with the shortest slice share the device.
  bool sharing() const { return sharing_; }
  // True if slices give the device to the processes that the policy lets run. Then all queues must report
  // when they have work, even if none can be held any more.
  bool beside_holding() const { return division_ == Division::kBesideHolding; }
  // True if slices alone divide the device.
  bool replace_holding() const { return division_ == Division::kAlone; }
  // True if the processes with the shortest slice take turns.
  bool take_turns() const { return division_ == Division::kBesideHolding && !sharing_ && !released_; }
  // True if several take turns and can not share instead, because commands are long. As of the last decision.
  bool turns_only() const { return take_turns() && turn_takers_ > 1 && !may_share_; }

  // In this order, in every decision, once it is known which queues run:
  // 1. Counts the processes that want the device, and decides whether they share it. `active`: the device's
  //    queues that the decision considers. `released`: the watchdog lets every queue run. Returns when to
  //    call it again at the latest.
  TimePoint Observe(std::span<QueueRecord* const> active, bool released, TimePoint now, ControlSink& sink);
  // 2. Turns::Update chooses which process is on the device.
  // 3. Reports what has changed. `above`: in a window, processes of a higher priority than this keep a long
  //    slice, because they have a better claim than the window's queue.
  void Report(DeviceId device, Priority above, TimePoint now, ControlSink& sink);

  // Whose turn it is on this device. Turns decides it.
  struct Turn {
    ProcessRecord* holder = nullptr;
    TimePoint keeps_until{};      // the earliest time at which a job whose turn it is takes it back
    size_t ready = 0;             // processes with the shortest slice and work
    size_t competing = 0;         // of these, those that may run
    bool urgent_at_work = false;  // a more urgent process keeps all of them from the device
  };
  Turn& turn() { return turn_; }
  std::span<ProcessRecord* const> processes() const { return processes_; }  // in the order of their arrival
  // Those that are remembered without a queue as well, in the order of their ids.
  std::span<ProcessRecord* const> all() const { return by_id_; }

 private:
  void TakeOut(ProcessRecord& process, DeviceId device, Turns& turns, ControlSink& sink);
  void ForgetThoseWithoutQueues(TimePoint now);
  // Processes of one job or, if none is known, of one priority.
  struct Group {
    JobId job;
    Priority priority;
    uint32_t members;
  };
  void LeaveTurns(ProcessRecord& process, Turns& turns);
  void JoinParties(Turns& turns);
  template <typename Do>
  bool ForEachParty(const Turns& turns, bool all, Do&& act);
  // A process that cannot be sliced would have the driver's slice beside the shortest slices of others.
  bool can_be_divided() const { return all_sliceable_ && processes_.size() > 1; }
  size_t IndexById(ProcessId process) const;
  bool PrepareGroups();
  Group& FindGroup(JobId job, Priority priority);
  void Account(TimePoint now);
  void Count(std::span<QueueRecord* const> active, TimePoint now);
  Duration SliceOf(const ProcessRecord& process, const ProcessRecord* holder, Priority above,
                   TimePoint now) const;
  TimePoint ObserveShortest(std::span<QueueRecord* const> active, TimePoint now, ControlSink& sink);
  TimePoint Weigh(TimePoint now, std::span<QueueRecord* const> active, ControlSink& sink);
  void ForgetWeights();
  static void Set(DeviceId device, ProcessRecord& process, Duration slice, TimePoint now, ControlSink& sink);
  static void SetTurn(DeviceId device, ProcessRecord& process, bool has_turn, ControlSink& sink);

  Array<ProcessRecord*> processes_;
  Array<ProcessRecord*> by_id_;  // all
  Array<ProcessView> views_;     // kept for its memory; likewise
  Array<Group> groups_;
  Division division_ = Division::kNone;
  bool all_sliceable_ = false;
  size_t turn_takers_ = 0;  // processes with the shortest slice
  const DeviceRecord* leader_ = nullptr;
  bool follows_ = false;  // division_ is not the policy's: these processes take turns as those of leader_
  bool leader_turns_ = false;  // they did so at the last Observe
  TimePoint refresh_at_ = kNever;
  bool refreshed_ = false;  // since the last Report
  Turn turn_;
  InOrder in_order_;
  Sharing trial_;
  bool sharing_ = false;    // no turns: the ready processes share the device
  bool may_share_ = false;  // the commands of all that are ready are short
  bool gaps_ = false;       // a process with a long slice is bound by launches
  bool released_ =
      false;  // no turns, and no process has the shortest slice (see above), because of the next two:
  bool window_ = false;         // a window of the watchdog
  TimePoint conflict_until_{};  // processes of different classes, with different slices, are on the device
  TimePoint accounted_at_{};
};

}  // namespace xsched::sched
