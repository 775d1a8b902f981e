// The scheduler's promises, checked at every moment of a simulated history.
//
// Terms. A queue is *runnable* if it has a command that its device could execute now: its process is not
// stopped, the server does not take it for stopped, its program has not suspended the queue, and the command
// does not wait for another queue. A queue *works* if the device executes a command of it. Its *claim* is
// what the policy says of itself (ClaimBy): its priority, or whether it has a share. For policies with other
// claims only promises 1 and 3 are checked. An awaited queue inherits the waiter's claim.
//
// 1. No device stands still. While a queue of a device is runnable, a queue of that device works, except for
//    at most 100 ms at a time. The time starts anew
//    - when a process with work there is stopped;
//    - when that is noticed while another queue waits for one: only from then on can the scheduler see that
//      the waiter hangs.
//    If all runnable queues of the device have used up their limits at some moment of it (RESERVE), it is as
//    much longer as a limit may keep one of them from running, because a limit holds even if the device is
//    idle. That is until its periods have paid for what its commands have used up: one second and a period at
//    most. And it is so only if the process was let run, or its commands ran on, for half as long as the
//    limit allows: commands that run on are charged until the client says that they have ended.
// 2. A runnable queue works within 100 ms of the moment from which on no queue with a better claim is
//    runnable on its device. Queues that are idle, dead, stopped, suspended or waiting are not runnable. So
//    this covers the end, the death, the stop and the hang of a rival.
//    - The time is counted in two ways: without a break; and as a sum over several pieces, with the work of
//      rivals between them. The sum leaves out the time in which a better one waits for another queue.
//    - When a stop is noticed and another queue with a better claim waits, the time starts anew, as in 1.
//    - Processes with equal claims may take turns, in one ring for all devices. The limit is 100 ms for each
//      of them that has work there (or on any other device), and 100 ms more if a process was stopped
//      meanwhile.
//    - Where claims are shares, a round of time slices is added, of the default ones at least, and what the
//      queue may owe: because it used the device while the others were idle, or because its commands ran on
//      when it was held, or spun then.
// 3. When all processes but one have ended, the queues of that one run, its slices are the driver's, and its
//    channels are on, within 1.2 s (the scheduler keeps a process without queues for a second). This holds
//    whatever control calls have failed. A queue may be held that has used up its own limit.
// 4. If a queue waits for another one, and the scheduler does not know it, the wait ends within 100 ms and
//    the time that the awaited queue needs.
//    - Counted is the time in which the awaited queue is runnable and does not work, while the waiter may use
//      its own device, and no queue with a better claim than the waiter's has work on the awaited queue's
//      device. A claim of a queue that waits itself counts as well. Where claims are shares, the time does
//      not count either while one with a share works there, or if the awaited queue has a share: that one
//      has its turn in the round.
//    - The watchdog lets go for 10 ms, then 20, 40, …. A queue that needs several windows has 100 ms
//      for each.
//    - The needed time is what the awaited queue has received, what it still has to do while each queue with
//      work takes its part, and the time until the slices of a window are set.
//    - If the two queues are on different devices, or the waiter inherits its claim from a hidden wait on
//      another device, one more window is allowed, and one turn if the awaited queue's process is off its
//      device. The time is then counted without a break, because a queue that works now and then does not
//      count as held.
//    - If, on different devices, the scheduler knows tenants and the two are neither of one process nor of
//    one
//      job, it lets go for 10 ms in each 200 ms only while a window is open: 300 ms more are allowed.
//
// Allowances. Each limit has 15 ms more, for an agent's reaction and for control calls of up to 0.6 ms each,
// of which three in a row may fail. In promise 2, time counts only after a queue has been entitled for 5 ms
// without a break (grace period, late reports). The device itself adds nothing: the model divides its time
// exactly.
#pragma once

#include <span>
#include <string>

#include "sched/sim/device_model.h"
#include "sched/sim/limits.h"

namespace xsched::sched::sim {

class Promises {
 public:
  Promises(const DeviceModel& devices, std::span<const ProcessModel> processes,
           std::span<const QueueModel> queues)
      : devices_(devices), processes_(processes), queues_(queues), limits_(queues) {}

  // The claims have changed: the counted times start anew.
  void ClaimsChanged(const PolicyInfo& policy, Duration timeslice);
  // The scheduler keeps the queue from running because of its limit, for so long from now on; zero: it does
  // not.
  void LimitUsedUp(size_t queue, Duration limited_for, TimePoint now);
  // The present situation has lasted for `elapsed`, since `from`.
  void Hold(TimePoint from, Duration elapsed);
  void Stopped(int process);
  // The server has noticed that a process was stopped or continued.
  void StopNoticed();
  void NotGivenBack(TimePoint now, const std::string& what);

  bool kept() const { return broken_.empty(); }
  // The first promise that was not kept.
  const std::string& broken() const { return broken_; }

 private:
  // For promise 2.
  struct Entitlement {
    Duration in_one_piece{};
    Duration without_work{};  // the part of in_one_piece in which the queue did not work, as far as it counts
    Duration in_all{};        // the same, added up over several pieces, without waits of better ones
    int equals = 0;
    bool stop = false;  // a process was stopped, or a stop was noticed
    double uses = 1;    // where claims are shares: the sum of all, divided by its own
  };
  // For promise 4.
  struct HiddenWait {
    uint64_t command = 0;  // the waiting command
    Duration held_up{};
    Duration needed{};
    bool apart = false;   // the scheduler had to guess that a queue of another device is needed
    bool turn = false;    // the process of the awaited queue was off its device
    bool seldom = false;  // the scheduler lets go of that device seldom, for the sake of other tenants
  };
  struct Standing {
    bool works = false;
    bool waits = false;    // a queue waits for another one
    int best = 0;          // the best claim of the runnable queues, inherited ones included
    int best_waiting = 0;  // the best claim of those that wait
    int best_at_work = 0;
    int present = 0;     // number of queues that have work and may want the device
    int with_share = 0;  // number of queues with a share
    double shares = 0;
    bool within_limits = false;  // a runnable queue has not used up its limit
    Duration
        longest_limit{};  // for how long limits may keep runnable queues from running that have used them up
    Duration still{};
    Duration
        limited{};  // the same, if at some moment of `still` all runnable queues had used up their limits
  };

  bool IsPresent(const QueueModel& queue) const;
  bool IsRunnable(const QueueModel& queue) const;
  int Claim(const QueueModel& queue) const;
  void InheritClaims();
  void Look();
  void NoDeviceStandsStill(int device, Duration elapsed);
  void TheNextOneRuns(size_t index, Duration elapsed);
  void HiddenWaitsEnd(size_t index, Duration elapsed);
  int Equals(size_t index) const;
  // What a queue waits for, through all waits.
  struct Awaited {
    size_t root;    // the queue at the end of the chain
    Duration left;  // what that one still has to do, if nothing else runs there
    bool apart;     // the scheduler has to guess that a queue of another device needs it
  };
  Duration LongestOverrun(const QueueModel& queue) const;
  Awaited WhatIsAwaited(size_t index) const;
  bool AreUnrelated(const QueueModel& one, const QueueModel& other) const;
  struct Settling {
    Duration each{};  // how much each window loses
    Duration once{};  // how much one of them loses in addition
  };
  Settling SettlingOf(int device) const;
  void Break(const std::string& what);

  const DeviceModel& devices_;
  std::span<const ProcessModel> processes_;
  std::span<const QueueModel> queues_;
  Limits limits_;
  bool has_limits_ = false;
  ClaimBy claim_ = ClaimBy::kOther;
  Duration timeslice_{};
  TimePoint until_{};
  int inherited_[kMaxQueues] = {};
  // The claim is inherited from a queue of another device, whose wait the scheduler does not know.
  bool inherited_unseen_[kMaxQueues] = {};
  bool runnable_[kMaxQueues] = {};
  Entitlement entitled_[kMaxQueues] = {};
  HiddenWait waits_[kMaxQueues] = {};
  Standing standing_[kMaxDevices] = {};
  std::string broken_;
};

}  // namespace xsched::sched::sim
