// Time slices of whole processes, where a device's own scheduler divides its time between them (level 3).
//
// They are set when processes or hints change, never per task: a call takes the driver a fraction of a
// millisecond. The policy says how long each process may keep the device (Policy::Divide). Two processes with
// the shortest slice cannot both want the device, for it would do nothing but change between them; one that
// waits at a gate wants it as well. So of those that are ready
//   - one has its turn at a time, and the others are taken off;
//   - or, where the commands of all of them are so short that gates alone stop them soon enough, they share
//     the device in the driver's slices: by itself, a program bound by launch cost leaves most of it unused.
//
// Pure; of one device.
#pragma once

#include "base/array.h"
#include "sched/core/scheduler.h"

namespace xsched::sched {

struct QueueRecord;

class ProcessSlices {
 public:
  // A queue has come, or hints or the policy have changed: Refresh is due.
  void Changed() { refresh_at_ = TimePoint{}; }
  // A queue has gone. Programs make and release streams by the second: Refresh is due in a while.
  void QueueGone(TimePoint now);
  TimePoint refresh_at() const { return refresh_at_; }
  // Decides the slices anew; `queues` are all of the device's. Reports what has changed.
  void Refresh(const Policy& policy, DeviceId device, std::span<QueueRecord* const> queues,
               ControlSink& sink);

  // Does nobody have another slice than the driver's?
  bool none() const { return division_ == Division::kNone; }
  // Does who is held find itself off the device soon, whatever it has at work there?
  bool cut_short() const { return !none() && !sharing_; }
  // Do the slices alone say who runs?
  bool replace_holding() const { return division_ == Division::kAlone; }

  // After the policy: lets the processes with the shortest slice that may run take turns, or share the
  // device. A turn is over after `turn`, as soon as a more urgent process has come and finished. Returns when
  // to be called again at the latest.
  TimePoint TakeTurns(DeviceId device, std::span<QueueRecord* const> queues, TimePoint now, Duration turn,
                      ControlSink& sink);

 private:
  struct Member {
    ProcessId process;
    Duration slice;     // by the policy
    Duration reported;  // that, or kNoSlice
    bool ready = false;
    bool competes = false;  // … and may run

    // How long its commands take the device: what it has retired in how much of the device's time, since last
    // looked at.
    uint64_t retired = 0;  // of all of its queues
    uint64_t seen_retired = 0;
    Duration on_device{};
    bool looked_at = false;       // false: since then its time was not counted
    TimePoint weigh_at = kNever;  // it has been asked what it has retired
    bool brief = false;           // so short that gates alone stop it soon enough
  };

  Member* Find(ProcessId process);
  void CountQueues(std::span<QueueRecord* const> queues);
  bool IsOn(const Member& member) const { return member.competes && (sharing_ || member.process == turn_); }
  void Account(TimePoint now);
  TimePoint Weigh(TimePoint now, std::span<QueueRecord* const> queues, ControlSink& sink);
  void ChooseTurn(TimePoint now, Duration turn, const Member& next);
  // The competing member after `process`, around the circle. Null: nobody competes.
  const Member* After(ProcessId process) const;
  static void Report(DeviceId device, Member& member, Duration slice, ControlSink& sink);

  Array<Member> members_;  // in the order in which they came
  Array<ProcessView> views_;
  Division division_ = Division::kNone;
  TimePoint refresh_at_ = kNever;
  ProcessId turn_{};
  TimePoint turn_until_{};
  bool urgent_came_ = false;  // and has nobody else run since
  bool sharing_ = false;      // no turns: those that are ready share the device
  TimePoint accounted_at_{};
};

}  // namespace xsched::sched
