#include "sched/sim/promises.h"

#include <algorithm>
#include <limits>

namespace xsched::sched::sim {
namespace {

constexpr Duration kLimit = milliseconds(100);
constexpr Duration kSeldom = milliseconds(300);  // between windows that are seldom, for the sake of tenants
constexpr Duration kAllowance = milliseconds(15);
constexpr Duration kSettles = milliseconds(5);
constexpr Duration kFirstWindow = milliseconds(10);
constexpr Duration kRetry = milliseconds(1);  // after a control call that failed
constexpr int kNobody = std::numeric_limits<int>::min();

std::string Milliseconds(Duration duration) { return std::to_string(duration / microseconds(1)) + " us"; }

// How many of the watchdog's windows are needed for `needed`, if each loses `lost`.
int Windows(Duration needed, Duration lost) {
  int windows = 1;
  for (Duration window = kFirstWindow; needed > window - lost; window *= 2, ++windows)
    needed -= window - lost;
  return windows;
}

}  // namespace

void Promises::ClaimsChanged(const PolicyInfo& policy, Duration timeslice) {
  claim_ = policy.claim;
  has_limits_ = policy.has_limits;
  timeslice_ = timeslice;
  std::fill(std::begin(entitled_), std::end(entitled_), Entitlement{});
  std::fill(std::begin(waits_), std::end(waits_), HiddenWait{});
}

void Promises::LimitUsedUp(size_t queue, Duration limited_for, TimePoint now) {
  const std::string broken = limits_.Check(queue, limited_for, now);
  until_ = now;
  if (!broken.empty()) Break("promise 1: " + broken);
}

void Promises::NotGivenBack(TimePoint now, const std::string& what) {
  until_ = now;
  Break("promise 3: " + what);
}

void Promises::Break(const std::string& what) {
  if (broken_.empty()) broken_ = "at " + Milliseconds(until_.time_since_epoch()) + ": " + what;
}

void Promises::Hold(TimePoint from, Duration elapsed) {
  until_ = from + elapsed;
  if (has_limits_) limits_.Hold(from, elapsed);
  Look();
  for (int device = 0; device < kMaxDevices; ++device) NoDeviceStandsStill(device, elapsed);
  if (claim_ == ClaimBy::kOther) return;
  for (size_t i = 0; i < queues_.size(); ++i) {
    TheNextOneRuns(i, elapsed);
    HiddenWaitsEnd(i, elapsed);
  }
}

bool Promises::IsPresent(const QueueModel& queue) const {
  const ProcessModel& process = processes_[Index(queue.script->process)];
  return queue.exists && queue.HasHead() && !queue.suspended && !process.stopped && !process.seen_stopped;
}

bool Promises::IsRunnable(const QueueModel& queue) const {
  return IsPresent(queue) && (queue.stage == Stage::kHeld || queue.stage == Stage::kExecutes);
}

int Promises::Claim(const QueueModel& queue) const {
  if (claim_ == ClaimBy::kShare) return queue.hints.utilization > 0 ? 1 : 0;
  return queue.hints.priority;
}

void Promises::InheritClaims() {
  bool waits = false;
  for (size_t i = 0; i < queues_.size(); ++i) {
    inherited_[i] = Claim(queues_[i]);
    inherited_unseen_[i] = false;
    waits |= queues_[i].stage == Stage::kAwaits || queues_[i].stage == Stage::kSpins;
  }
  for (size_t length = 0; waits && length < queues_.size(); ++length) {
    waits = false;
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i].stage != Stage::kAwaits && queues_[i].stage != Stage::kSpins) continue;
      const size_t owner = Index(queues_[i].script->target);
      if (inherited_[owner] >= inherited_[i]) continue;
      waits = true;
      inherited_[owner] = inherited_[i];
      const bool apart = queues_[owner].script->device != queues_[i].script->device;
      inherited_unseen_[owner] = inherited_unseen_[i] || (apart && queues_[i].stage == Stage::kSpins);
    }
  }
}

void Promises::Look() {
  InheritClaims();
  for (Standing& standing : standing_) {
    standing = Standing{.best = kNobody,
                        .best_waiting = kNobody,
                        .best_at_work = kNobody,
                        .still = standing.still,
                        .limited = standing.limited};
  }
  for (size_t i = 0; i < queues_.size(); ++i) {
    const QueueModel& queue = queues_[i];
    runnable_[i] = IsRunnable(queue);
    Standing& standing = standing_[queue.script->device];
    if (queue.exists && queue.hints.utilization > 0) {
      ++standing.with_share;
      standing.shares += queue.hints.utilization;
    }
    if (queue.rate > 0) {
      standing.works = true;
      standing.best_at_work = std::max(standing.best_at_work, inherited_[i]);
    }
    if (runnable_[i]) standing.best = std::max(standing.best, inherited_[i]);
    standing.present += queue.HasHead();
    standing.waits |= IsPresent(queue) && !runnable_[i];
    if (IsPresent(queue)) standing.best_waiting = std::max(standing.best_waiting, inherited_[i]);
    if (runnable_[i] && has_limits_ && limits_.IsUsedUp(i)) {
      standing.longest_limit = std::max(standing.longest_limit, Limits::Longest());
    } else {
      standing.within_limits |= runnable_[i];
    }
  }
}

void Promises::NoDeviceStandsStill(int device, Duration elapsed) {
  Standing& standing = standing_[device];
  if (standing.works || standing.best == kNobody) {
    standing.still = {};
    standing.limited = {};
    return;
  }
  standing.still += elapsed;
  if (!standing.within_limits) standing.limited = std::max(standing.limited, standing.longest_limit);
  const Duration limit = kLimit + kAllowance + standing.limited;
  if (standing.still > limit)
    Break("promise 1: device " + std::to_string(device) + " stands still for " +
          Milliseconds(standing.still));
}

// The number of other processes that may take turns with the queue's own. There is one ring for all devices.
int Promises::Equals(size_t index) const {
  const QueueModel& queue = queues_[index];
  bool counted[kMaxProcesses] = {};
  for (size_t i = 0; i < queues_.size(); ++i) {
    const QueueModel& other = queues_[i];
    if (!other.exists || !other.HasHead() || other.suspended) continue;
    if (other.script->device != queue.script->device || inherited_[i] >= Claim(queue))
      counted[other.script->process] = true;
  }
  counted[queue.script->process] = false;
  return static_cast<int>(std::count(std::begin(counted), std::end(counted), true));
}

void Promises::Stopped(int process) {
  for (const QueueModel& queue : queues_) {
    if (queue.script->process == process && queue.HasHead()) standing_[queue.script->device].still = {};
  }
  for (Entitlement& entitled : entitled_) entitled.stop = true;
}

void Promises::StopNoticed() {
  Look();
  for (Standing& standing : standing_) {
    if (standing.waits) standing.still = {};
  }
  for (size_t i = 0; i < queues_.size(); ++i) {
    entitled_[i].stop = true;
    if (standing_[queues_[i].script->device].best_waiting <= Claim(queues_[i])) continue;
    entitled_[i].in_one_piece = entitled_[i].without_work = {};
  }
}

void Promises::TheNextOneRuns(size_t index, Duration elapsed) {
  const QueueModel& queue = queues_[index];
  Entitlement& entitled = entitled_[index];
  const Standing& standing = standing_[queue.script->device];
  const int claim = Claim(queue);
  if (queue.rate > 0 || !IsPresent(queue)) entitled = {};
  if (queue.rate > 0) return;
  if (!runnable_[index] || standing.best > claim) {
    entitled.in_one_piece = entitled.without_work = {};
    return;
  }
  const Duration not_counted = std::max(Duration::zero(), kSettles - entitled.in_one_piece);
  const Duration counted = std::max(Duration::zero(), elapsed - not_counted);
  entitled.in_one_piece += elapsed;
  entitled.without_work += counted;
  if (standing.best_waiting <= claim) entitled.in_all += counted;
  entitled.equals = std::max(entitled.equals, Equals(index));
  Duration limit = kLimit * std::max(1, entitled.equals + entitled.stop) + kAllowance;
  if (claim_ == ClaimBy::kShare && queue.hints.utilization > 0) {
    entitled.uses = std::max(entitled.uses, standing.shares / queue.hints.utilization + standing.with_share);
    // Of shorter ones, changes of turns take the larger part.
    const Duration timeslice = std::max<Duration>(timeslice_, microseconds(TIMESLICE_DEFAULT));
    const Duration debt = 3 * timeslice + LongestOverrun(queue);
    limit += Duration(static_cast<int64_t>(entitled.uses * static_cast<double>(debt.count())));
  }
  if (std::max(entitled.without_work, entitled.in_all) <= limit) return;
  Break("promise 2: queue " + std::to_string(index) + " does not run for " +
        Milliseconds(std::max(entitled.without_work, entitled.in_all)) + ", of " + Milliseconds(limit) +
        " at most, though nobody's claim is better");
}

// For how long the queue may be charged after a hold: for what the device has of it, or as long as that is
// not known, for the time of two commands. A command that waits for a held queue ends only when the watchdog
// lets go.
Duration Promises::LongestOverrun(const QueueModel& queue) const {
  const ProcessScript& process = *processes_[Index(queue.script->process)].script;
  if (process.level == 3) return {};
  const bool spins = queue.script->wait == Wait::kHidden || queue.script->wait == Wait::kGang;
  return std::max<Duration>(queue.script->command, queue.script->long_command) * (2 + process.overrun) +
         (spins ? kLimit : Duration::zero());
}

Promises::Awaited Promises::WhatIsAwaited(size_t index) const {
  Awaited awaited{.root = index, .left = {}, .apart = inherited_unseen_[index]};
  uint64_t commands = 0;  // of the root; several that are modeled as one count once
  for (size_t length = 0; length < queues_.size(); ++length) {
    const QueueModel& queue = queues_[awaited.root];
    if (queue.stage != Stage::kAwaits && queue.stage != Stage::kSpins) break;
    awaited.root = Index(queue.script->target);
    const QueueModel& target = queues_[awaited.root];
    const bool seen = queue.stage == Stage::kAwaits;
    const uint64_t until = seen ? queue.await_retired : queue.await_arrived;
    const uint64_t done = seen ? target.retired : target.arrived;
    commands = until > done ? until - done : 0;
  }
  const QueueModel& root = queues_[awaited.root];
  const Duration each = std::max<Duration>(root.script->command, kTakenAsOne);
  awaited.left = Duration(static_cast<int64_t>(root.head_left)) + each * static_cast<int64_t>(commands);
  awaited.apart |= root.script->device != queues_[index].script->device;
  return awaited;
}

// How much a window loses before the processes of the device have its slices. Control calls fail only once in
// a history.
Promises::Settling Promises::SettlingOf(int device) const {
  Settling settling;
  for (const QueueModel& queue : queues_) {
    const ProcessScript& script = *processes_[Index(queue.script->process)].script;
    if (queue.script->device != device || !queue.HasHead() || script.level < 3) continue;
    settling.each = std::max<Duration>(settling.each, script.reaction + script.call);
    settling.once = std::max<Duration>(settling.once, script.faults * (script.call + kRetry));
  }
  return settling;
}

bool Promises::AreUnrelated(const QueueModel& one, const QueueModel& other) const {
  const ProcessScript& process = *processes_[Index(one.script->process)].script;
  const ProcessScript& rival = *processes_[Index(other.script->process)].script;
  const bool same_job = process.job != 0 && process.job == rival.job;
  return process.tenant != 0 && &process != &rival && !same_job;
}

void Promises::HiddenWaitsEnd(size_t index, Duration elapsed) {
  const QueueModel& queue = queues_[index];
  if (queue.stage != Stage::kSpins) return;
  HiddenWait& wait = waits_[index];
  if (wait.command != queue.arrived) wait = {.command = queue.arrived};
  const auto [root, left, apart] = WhatIsAwaited(index);
  wait.apart |= apart;
  const QueueModel& awaited = queues_[root];
  if (!IsPresent(queue) || !runnable_[root]) wait.held_up = {};
  if (awaited.rate > 0) wait.needed += elapsed;
  if (apart && awaited.rate > 0) wait.held_up = {};
  if (!runnable_[root] || awaited.rate > 0 || !IsPresent(queue)) return;
  // A queue that is held or off waits for its own turn as well.
  const ProcessModel& process = processes_[Index(queue.script->process)];
  if (queue.hold || !devices_.MayUse(process, queue.script->device)) return;
  const Standing& there = standing_[awaited.script->device];
  if (there.best_waiting > inherited_[index]) return;
  if (claim_ == ClaimBy::kShare && (there.best_at_work > 0 || Claim(awaited) > 0)) return;
  wait.held_up += elapsed;
  wait.turn |=
      wait.apart && !devices_.MayUse(processes_[Index(awaited.script->process)], awaited.script->device);
  const Settling settling = SettlingOf(awaited.script->device);
  const Duration needed = wait.needed + left * there.present + settling.once;
  wait.seldom |= wait.apart && AreUnrelated(queue, awaited);
  const Duration limit = kLimit * (Windows(needed, settling.each) + wait.apart + wait.turn) +
                         (wait.seldom ? kSeldom : Duration::zero()) + kAllowance;
  if (wait.held_up <= limit) return;
  Break("promise 4: queue " + std::to_string(index) + " waits for queue " + std::to_string(root) +
        ", which is kept from working for " + Milliseconds(wait.held_up) + ", of " + Milliseconds(limit) +
        " at most");
}

}  // namespace xsched::sched::sim
