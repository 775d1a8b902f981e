#include "preempt/gate_chain.h"

#include <algorithm>

#include "base/log.h"

namespace xsched::preempt {
namespace {

// How often a queue that others wait for tells where it is, at most, while it is being filled.
constexpr Duration kProgressEvery = std::chrono::milliseconds(1);

}  // namespace

// REQUIRES: the lock.
void GateChain::PutMarker(uint64_t upto, const Now& now, GateDriver& driver) {
  if (upto <= now.retired || upto <= last_marker_ || !driver.AppendMarker(upto)) return;
  last_marker_ = upto;
  last_marker_at_ = now.time;
}

// Puts a marker if one is due; tells whether a gate is. REQUIRES: the lock.
bool GateChain::Mark(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) {
  uint64_t before = number - 1;
  if (now.retired >= before) {
    // The queue was idle: the program's own waits may have retired commands that no marker told of.
    busy_since_ = now.time;
    if (before > seen_retired_) seen_retired_ = before;
  }
  const int64_t limit = pace_.Limit(limits.threshold, limits.latency);
  const auto batch = static_cast<uint64_t>(Pace::Batch(limit, limits.batch_size));

  bool gate_now;
  if (!closed_.empty()) {
    gate_now = now.bounded && before >= closed_.back().after + batch;
  } else {
    uint64_t in_flight = before > now.retired ? before - now.retired : 0;
    gate_now = now.hold || (now.bounded && in_flight >= static_cast<uint64_t>(limit));
  }
  // However many a queue that others wait for is filled with at once, its progress shows: by batches, of the
  // launch config while its pace is not known.
  const uint64_t marker_every =
      now.bounded || pace_.known() ? batch : static_cast<uint64_t>(limits.batch_size);
  bool batch_full = (now.bounded || now.tracked) && before >= last_marker_ + marker_every;
  bool progress_due = now.tracked && now.time >= last_marker_at_ + kProgressEvery;
  if (gate_now || batch_full || progress_due) PutMarker(std::min(before, now.launched), now, driver);
  return gate_now;
}

bool GateChain::MarkBefore(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) {
  MutexLock lock(mutex_);
  return Mark(number, now, limits, driver);
}

void GateChain::MarkLaunched(const Now& now, GateDriver& driver) {
  MutexLock lock(mutex_);
  PutMarker(now.launched, now, driver);
}

void GateChain::BeforeLaunch(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) {
  MutexLock lock(mutex_);
  if (!Mark(number, now, limits, driver) || gates_failed_) return;

  Gate gate{0, number - 1};
  if (closed_.Reserve() && driver.AppendGate(&gate.token)) {
    [[maybe_unused]] bool pushed = closed_.Push(gate);
    closed_count_.fetch_add(1, std::memory_order_release);
    return;
  }
  gates_failed_ = true;
  XSCHED_WARN("the driver refused a gate: this queue goes on unscheduled");
}

int GateChain::Advance(uint64_t submitted, const Now& now, const Limits& limits, GateDriver& driver) {
  if (!HasClosed()) return 0;
  MutexLock lock(mutex_);
  if (now.hold) return 0;
  const int64_t limit = pace_.Limit(limits.threshold, limits.latency);
  int opened = 0;
  while (!closed_.empty()) {
    const Gate gate = closed_.front();
    uint64_t in_flight = gate.after > now.retired ? gate.after - now.retired : 0;
    uint64_t next_end = closed_.size() > 1 ? closed_[1].after : submitted;
    uint64_t batch = next_end > gate.after ? next_end - gate.after : 0;
    if (now.bounded && in_flight != 0 && in_flight + batch > static_cast<uint64_t>(limit)) break;
    if (in_flight == 0) busy_since_ = now.time;
    closed_.Pop();
    closed_count_.fetch_sub(1, std::memory_order_release);
    driver.OpenGate(gate.token);
    ++opened;
  }
  return opened;
}

void GateChain::OnRetired(uint64_t retired, TimePoint now) {
  MutexLock lock(mutex_);
  if (retired <= seen_retired_) return;
  pace_.OnRetired(retired - seen_retired_, busy_since_, now);
  seen_retired_ = retired;
  busy_since_ = now;
}

uint64_t GateChain::OpenEnd(uint64_t submitted) {
  MutexLock lock(mutex_);
  return closed_.empty() ? submitted : closed_.front().after;
}

void GateChain::Reset() {
  MutexLock lock(mutex_);
  last_marker_ = seen_retired_ = 0;
  last_marker_at_ = TimePoint{};
  busy_since_ = TimePoint{};
  pace_ = Pace{};
  gates_failed_ = false;
}

void GateChain::ResetAfterFork() {
  mutex_.ResetAfterFork();
  closed_.Clear();
  closed_count_.store(0, std::memory_order_relaxed);
}

}  // namespace xsched::preempt
