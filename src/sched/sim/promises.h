// What the scheduler promises, checked at every moment of a simulated history.
//
// Words. A queue is *runnable* if it has been given a command that its device could work at now: its
// process is not stopped (and the server does not take it for stopped any more), its program has not
// suspended it, and the command does not wait for another queue. It *works* if the device works at it. Its
// *claim* is its priority (HPF), or whether it has a share at all (UP); for other policies only promises 1
// and 3 are checked. A waiter lends its claim to whom it waits for, when it is asked whether somebody
// else's claim was better.
//
// 1. No device stands still: while some queue of a device is runnable, some queue of it works, except for
//    100 ms. The time starts anew when a process is stopped that has work there, and when that is noticed
//    while another queue waits for one: only now it can be seen that this one hangs.
// 2. A queue that is runnable works within 100 ms of the moment from which on no queue with a better claim
//    is runnable on its device. Idle, dead, stopped and suspended queues are not runnable, nor are those
//    that wait for something of others; so this is the end, the death, the stop and the hang of a rival.
//    Counted twice: in one piece; and added up over the work of rivals between, then without the time in
//    which a better one waits for another queue. When a stop is noticed and another better one waits, the
//    time starts anew, as above. Processes with equal claims may take turns, in one ring for all devices:
//    the limit is 100 ms for each of the others that have been given something there (on other devices:
//    anything), and 100 ms more if a process was stopped meanwhile. Under UP it is a round of time slices
//    more, and what the queue may owe for what it used while the others were away.
// 3. When all processes but one have gone, that one's queues run, its slices are the driver's, and its
//    channels are on, within 1.2 s (the scheduler remembers a process without queues for a second),
//    whatever control calls had failed.
// 4. A queue that waits for another one as the scheduler does not know goes on within 100 ms and what that
//    other one needs: the time counts in which what it waits for is runnable and does not work, since it
//    became so, while the waiter may use its own device, and nobody with a better claim than the waiter's
//    has been given anything on the device where it is needed. The watchdog lets go for 10 ms, then 20, 40,
//    …: who needs more than one such window may cost 100 ms for each that it needs, and one that a better
//    claim cuts short is given anew. What is needed is what it has had and what is left, each queue that
//    has been given something taking its part. Where the two are on different devices, two windows more,
//    and the time counts in one piece, for what works now and then is not taken for held.
//
// Allowances: 15 ms in each limit, for an agent's reaction, control calls of up to 0.6 ms each and three in
// a row that fail; in promise 2, a queue must have been entitled for 5 ms in one piece before its time
// counts (grace period, late reports). What a device needs by itself is no matter here, for its model
// divides its time exactly.
#pragma once

#include <span>
#include <string>

#include "sched/sim/device_model.h"

namespace xsched::sched::sim {

class Promises {
 public:
  Promises(const DeviceModel& devices, std::span<const ProcessModel> processes,
           std::span<const QueueModel> queues)
      : devices_(devices), processes_(processes), queues_(queues) {}

  // Claims are other ones from now on: what was counted does not count any more.
  void ClaimsChanged(XPolicyType policy, Duration timeslice);
  // What holds now has held for so long, since `from`.
  void Hold(TimePoint from, Duration elapsed);
  void Stopped(int process);
  // The environment has noticed that a process was stopped or continued.
  void StopNoticed();
  void NotGivenBack(TimePoint now, const std::string& what);

  bool kept() const { return broken_.empty(); }
  // The first that was not kept.
  const std::string& broken() const { return broken_; }

 private:
  // Of promise 2.
  struct Entitlement {
    Duration in_one_piece{};
    Duration without_work{};  // … of this, as far as it counts
    Duration in_all{};        // … of several pieces, without waits of better ones
    int equals = 0;
    bool stop = false;  // a process was stopped, or that was noticed
    double uses = 1;    // UP: all shares in terms of its own
  };
  // Of promise 4.
  struct HiddenWait {
    uint64_t command = 0;  // that waits
    Duration held_up{};
    Duration needed{};
    bool apart = false;  // the scheduler had to guess that a queue of another device is needed,
    bool turn = false;   // … and that one's process was off its device
  };
  struct Standing {
    bool works = false;
    bool waits = false;    // a queue for another one
    int best = 0;          // claims, lent ones included, of the runnable
    int best_waiting = 0;  // … and of those that wait
    int best_at_work = 0;
    int present = 0;     // queues that have been given something, and may want the device
    int with_share = 0;  // queues
    double shares = 0;
    Duration still{};
  };

  bool IsPresent(const QueueModel& queue) const;
  bool IsRunnable(const QueueModel& queue) const;
  int Claim(const QueueModel& queue) const;
  void LendClaims();
  void Look();
  void NoDeviceStandsStill(int device, Duration elapsed);
  void TheNextOneRuns(size_t index, Duration elapsed);
  void HiddenWaitsEnd(size_t index, Duration elapsed);
  int Equals(size_t index) const;
  // What a queue waits for.
  struct Awaited {
    size_t root;    // the queue whose work it is in the end,
    Duration left;  // … what that one still has to do, if nothing else ran there,
    bool apart;     // … and the scheduler would have to guess that a queue of another device needs it
  };
  Awaited WhatIsAwaited(size_t index) const;
  struct Settling {
    Duration each{};  // window loses so much,
    Duration once{};  // … and one of them so much more
  };
  Settling SettlingOf(int device) const;
  void Break(const std::string& what);

  const DeviceModel& devices_;
  std::span<const ProcessModel> processes_;
  std::span<const QueueModel> queues_;
  XPolicyType policy_ = kPolicyHighestPriorityFirst;
  Duration timeslice_{};
  TimePoint until_{};
  int lent_[kMaxQueues] = {};
  bool lent_unseen_[kMaxQueues] =
      {};  // … by a queue of another device that waits as the scheduler does not know
  bool runnable_[kMaxQueues] = {};
  Entitlement entitled_[kMaxQueues] = {};
  HiddenWait waits_[kMaxQueues] = {};
  Standing standing_[kMaxDevices] = {};
  std::string broken_;
};

}  // namespace xsched::sched::sim
