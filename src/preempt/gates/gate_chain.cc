#include "preempt/gates/gate_chain.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace xsched::preempt {
namespace {

// How often, at most, a queue that others wait for reports progress while commands are launched.
constexpr Duration kProgressEvery = std::chrono::milliseconds(1);

// If the queue may run and retires nothing for so long, a command in flight may wait for one behind a gate:
// on an out-of-order queue, or for a thread that waits for that one.
constexpr Duration kLetGoAfter = std::chrono::seconds(1);
// Not while it may just be at work on a long command, but Pace::kLongest bounds that.
constexpr int kCommandsBeforeLetGo = 2;

// The driver may have refused a gate because it had no memory for a moment. One that always refuses is asked
// so seldom.
constexpr Duration kGatesTriedAgain = std::chrono::seconds(1);

// On an out-of-order queue of PoCL's, a marker costs some 3 ns for each pair of unfinished commands: it is
// noted in each of them, in lists that are searched each time. So markers are so far apart that each command
// pays for so many pairs. The pace does not count here, because markers that are too near make it seem slow.
constexpr uint64_t kPairsForACommand = 4096;

}  // namespace

uint64_t GateChain::Apart(int64_t batch, uint64_t unfinished, const Limits& limits) {
  const auto least = static_cast<uint64_t>(batch);
  return limits.out_of_order ? std::max(least, unfinished * unfinished / kPairsForACommand) : least;
}

int64_t GateChain::InFlight(const Limits& limits) const {
  // The device waits for the host for a small part of a command that is longer than the latency.
  const bool alone = pace_.mean() > limits.latency;
  return std::max(pace_.Limit(limits.threshold, limits.latency),
                  alone ? 1 : std::min(limits.least, limits.threshold));
}

bool GateChain::PutMarker(uint64_t upto, const Now& now, GateDriver& driver) {
  {
    MutexLock lock(mutex_);
    if (upto <= now.retired || upto <= last_marker_) return true;
  }
  if (!driver.AppendMarker(upto)) return false;
  MutexLock lock(mutex_);
  last_marker_ = upto;
  last_marker_at_ = now.time;
  return true;
}

GateChain::Due GateChain::WhatIsDue(uint64_t number, const Now& now, const Limits& limits) {
  MutexLock lock(mutex_);
  uint64_t before = number - 1;
  if (now.retired >= before) {
    // The queue was idle. The program's own waits may have shown that commands have retired, without a
    // marker.
    busy_since_ = now.time;
    if (before > seen_retired_) seen_retired_ = before;
  }
  const int64_t limit = InFlight(limits);
  const uint64_t unfinished = before > now.retired ? before - now.retired : 0;
  const uint64_t batch = Apart(Pace::Batch(limit, limits.batch_size), unfinished, limits);

  bool gate_now;
  if (AnyClosed()) {
    gate_now = now.bounded && before >= closed_.back().after + batch;
  } else {
    gate_now = now.hold || (now.bounded && unfinished >= static_cast<uint64_t>(limit));
  }
  // A queue that others wait for must show its progress, however many commands are launched at once. So
  // markers come every batch, and while the pace is not known, every batch of the launch config.
  const uint64_t marker_every =
      now.bounded || pace_.known() ? batch : Apart(limits.batch_size, unfinished, limits);
  bool batch_full = (now.bounded || now.tracked) && before >= last_marker_ + marker_every;
  bool progress_due = now.tracked && now.time >= last_marker_at_ + kProgressEvery &&
                      before >= last_marker_ + Apart(1, unfinished, limits);
  const bool marker = gate_now || batch_full || progress_due;
  return {marker ? std::min(before, now.launched) : 0, gate_now};
}

// Puts a marker if one is due. Returns whether a gate is due.
bool GateChain::Mark(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) {
  const Due due = WhatIsDue(number, now, limits);
  // A gate opens when what is in front of it has retired. Without the marker that would never be known.
  if (due.marker != 0 && !PutMarker(due.marker, now, driver)) return false;
  return due.gate;
}

bool GateChain::MarkBefore(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) {
  MutexLock appending(appending_);
  return Mark(number, now, limits, driver);
}

void GateChain::MarkLaunched(const Now& now, GateDriver& driver) {
  MutexLock appending(appending_);
  PutMarker(now.launched, now, driver);
}

void GateChain::BeforeLaunch(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) {
  MutexLock appending(appending_);
  if (!Mark(number, now, limits, driver) || now.time < no_gates_until_) return;

  Gate gate{0, number - 1};
  bool room;
  {
    MutexLock lock(mutex_);
    room = closed_.Reserve();
  }
  // Only this thread pushes, and a pop takes no room. So the reserved room is still there.
  if (room && driver.AppendGate(&gate.token)) {
    MutexLock lock(mutex_);
    if (!AnyClosed()) stands_since_ = now.time;
    [[maybe_unused]] bool pushed = closed_.Push(gate);
    // seq_cst, against FlowState's progress: the thread that makes progress sees this gate, or the one that
    // puts it sees the progress.
    closed_count_.fetch_add(1, std::memory_order_seq_cst);
    return;
  }
  no_gates_until_ = now.time + kGatesTriedAgain;
  if (!std::exchange(warned_, true))
    XSCHED_WARN("the driver refused a gate: this queue goes on unscheduled until the driver takes one");
}

bool GateChain::MayBeStuck(TimePoint now) const {
  return now >= stands_since_ + std::max(kLetGoAfter, pace_.mean() * kCommandsBeforeLetGo);
}

bool GateChain::MayOpen(const Now& now) {
  if (opening_) {
    outdated_ = true;
    return false;
  }
  NoteHold(now);
  return !now.hold;
}

// A program beside this one may hold the queue again and again, each time for a moment. So a hold does not
// begin the wait of MayBeStuck anew.
void GateChain::NoteHold(const Now& now) {
  if (now.hold) {
    if (!held_since_) held_since_ = now.time;
  } else if (held_since_) {
    // Something may have retired during the hold: then the wait begins at its end.
    stands_since_ = std::min(now.time, stands_since_ + (now.time - *held_since_));
    held_since_.reset();
  }
}

bool GateChain::FrontMayOpen(uint64_t submitted, const Now& now, const Limits& limits) {
  if (closed_.empty()) return false;
  const Gate& front = closed_.front();
  const int64_t limit = InFlight(limits);
  uint64_t in_flight = front.after > now.retired ? front.after - now.retired : 0;
  uint64_t next_end = closed_.size() > 1 ? closed_[1].after : submitted;
  uint64_t batch = next_end > front.after ? next_end - front.after : 0;
  const bool full = now.bounded && in_flight != 0 && in_flight + batch > static_cast<uint64_t>(limit);
  return !full || MayBeStuck(now.time);
}

bool GateChain::BeginOpening(uint64_t submitted, const Now& now, const Limits& limits, uint64_t* gate) {
  MutexLock lock(mutex_);
  if (!FrontMayOpen(submitted, now, limits)) return false;
  const Gate& front = closed_.front();
  if (front.after <= now.retired) busy_since_ = now.time;
  stands_since_ = now.time;
  being_opened_ = 1;
  *gate = front.token;
  return true;
}

void GateChain::EndOpening(bool opened) {
  MutexLock lock(mutex_);
  being_opened_ = 0;
  if (!opened) return;
  closed_.Pop();
}

GateChain::Advanced GateChain::Advance(uint64_t submitted, const Now& now, const Limits& limits,
                                       GateDriver& driver) {
  if (!HasClosed()) return {};
  {
    MutexLock lock(mutex_);
    if (!MayOpen(now)) return {};
    opening_ = true;
  }
  Advanced advanced;
  for (uint64_t gate = 0; !advanced.refused && BeginOpening(submitted, now, limits, &gate);) {
    const bool opened = driver.OpenGate(gate);
    EndOpening(opened);
    advanced.opened += opened;
    advanced.refused = !opened;
  }
  if (advanced.opened != 0) driver.Flush();
  // After that: while gates are counted as closed, the driver's queue is kept.
  closed_count_.fetch_sub(static_cast<uint32_t>(advanced.opened), std::memory_order_release);
  MutexLock lock(mutex_);
  opening_ = false;
  advanced.outdated = std::exchange(outdated_, false);
  return advanced;
}

bool GateChain::IsDue(uint64_t submitted, const Now& now, const Limits& limits) {
  if (!HasClosed()) return false;
  MutexLock lock(mutex_);
  return MayOpen(now) && FrontMayOpen(submitted, now, limits);
}

void GateChain::OnRetired(uint64_t retired, TimePoint now) {
  MutexLock lock(mutex_);
  if (retired <= seen_retired_) return;
  pace_.OnRetired(retired - seen_retired_, busy_since_, now);
  seen_retired_ = retired;
  busy_since_ = stands_since_ = now;
}

void GateChain::OnPresumed(uint64_t retired) {
  MutexLock lock(mutex_);
  if (retired > seen_retired_) seen_retired_ = retired;
}

Duration GateChain::pace() {
  MutexLock lock(mutex_);
  return pace_.mean();
}

uint64_t GateChain::OpenEnd(uint64_t submitted) {
  MutexLock lock(mutex_);
  return AnyClosed() ? closed_[being_opened_].after : submitted;
}

void GateChain::Reset() {
  MutexLock appending(appending_);
  no_gates_until_ = TimePoint{};
  warned_ = false;
  MutexLock lock(mutex_);
  closed_.Clear();
  closed_count_.store(0, std::memory_order_relaxed);
  last_marker_ = seen_retired_ = 0;
  last_marker_at_ = TimePoint{};
  busy_since_ = stands_since_ = TimePoint{};
  held_since_.reset();
  pace_ = Pace{};
}

void GateChain::ResetAfterFork() {
  appending_.ResetAfterFork();
  mutex_.ResetAfterFork();
  closed_.Clear();
  opening_ = outdated_ = false;
  being_opened_ = 0;
  closed_count_.store(0, std::memory_order_relaxed);
}

}  // namespace xsched::preempt
