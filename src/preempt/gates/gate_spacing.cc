#include "preempt/gates/gate_spacing.h"

#include <algorithm>

#include "ipc/control_block.h"

namespace xsched::preempt {
namespace {

// Until the first report has come back, commands may be of any length. That is so for the time of one
// command, and what a queue of short ones launches in it are a few.
constexpr int64_t kUnknownSpacing = 1;
// The most commands between two gates, also if they are very short.
constexpr int64_t kMaxSpacing = 512;
// While the pace is steady, one gate of so many reports. Then a report is no further than so many commands.
constexpr int64_t kGatesPerReport = 4;
constexpr int64_t kMaxUnreported = 128;
// How often, at most, a queue that others wait for reports progress. The driver is asked whether it has
// finished. These reports are for queues that work for long.
constexpr Duration kReportEvery = std::chrono::milliseconds(5);

}  // namespace

void GateSpacing::Observe(const Now& now, uint64_t before) {
  const bool idle = now.retired >= before;
  // The time until the next report does not show how long commands take.
  const bool observes = !idle && !now.hold;
  const bool moved = observed_ && !now.hold && now.retired > observed_retired_;
  if (moved || (observes && !observed_)) {
    const TimePoint time = now.clock();
    if (moved) pace_.OnRetired(now.retired - observed_retired_, observed_at_, time);
    observed_retired_ = now.retired;
    observed_at_ = time;
  }
  observed_ = observes;
}

int64_t GateSpacing::Spacing(const Now& now) const {
  const int64_t most = std::clamp<int64_t>(now.at_most, 1, kMaxSpacing);
  return pace_.Limit(most, now.latency, kUnknownSpacing);
}

// A single command between two gates is a long one: then reports are rare, and the next one may be longer.
bool GateSpacing::ReportIsDue(uint64_t before, int64_t spacing, const Now& now) const {
  if (now.hold || now.telling || !pace_.known() || spacing == 1) return true;
  const int64_t apart = std::min(kGatesPerReport * spacing, kMaxUnreported);
  return before >= last_reporting_gate_ + static_cast<uint64_t>(apart);
}

// Progress changes the pace, and a hold needs a gate at once.
uint64_t GateSpacing::QuietUntil(int64_t spacing, const Now& now) const {
  if (!observed_) return 0;
  return now.gated ? last_gate_ + static_cast<uint64_t>(spacing) + 1 : UINT64_MAX;
}

GateSpacing::Decision GateSpacing::Before(uint64_t number, const Now& now) {
  // No command of a held queue may run because another thread has the lock.
  if (now.hold) {
    mutex_.Lock();
  } else if (!mutex_.TryLock()) {
    return {};
  }
  const uint64_t before = number - 1;
  Observe(now, before);
  const int64_t spacing = Spacing(now);
  const bool far = !any_gate_ || before >= last_gate_ + static_cast<uint64_t>(spacing);
  // The first command of a burst needs no gate: later commands have their own.
  const bool idle = now.retired >= before;
  bool gate;
  if (now.hold) {
    // Then the device may have passed all gates.
    gate = far || now.retired >= last_reporting_gate_;
  } else {
    gate = now.gated && !idle && far;
    if (idle) last_gate_ = last_reporting_gate_ = std::max(last_gate_, before);
  }
  const bool reports = gate && ReportIsDue(before, spacing, now);
  if (gate) {
    any_gate_ = true;
    last_gate_ = before;
    if (reports) last_reporting_gate_ = before;
    gates_[count_++ % kRemembered] = {before, now.pausable};
  }
  const uint64_t quiet_until = QuietUntil(spacing, now);
  mutex_.Unlock();
  if (!gate) return {Place::kNothing, quiet_until};
  return {reports ? Place::kGateThatReports : Place::kGate, quiet_until};
}

bool GateSpacing::ReportAfter(uint64_t number, bool each, Clock clock) {
  const TimePoint now = clock();
  if (!each && now < last_report_at_.load(std::memory_order_relaxed) + kReportEvery) return false;
  if (!mutex_.TryLock()) return each;
  const bool due = number >= last_access_;  // its own gate reports only what is in front of it
  if (due) last_report_at_.store(now, std::memory_order_relaxed);
  mutex_.Unlock();
  return due;
}

uint64_t GateSpacing::last_access() const {
  MutexLock lock(mutex_);
  return last_access_;
}

void GateSpacing::Accesses(uint64_t number, uint64_t report) {
  MutexLock lock(mutex_);
  last_access_ = std::max(last_access_, number);
  last_report_ = std::max(last_report_, report);
}

uint64_t GateSpacing::last_report() const {
  MutexLock lock(mutex_);
  return last_report_;
}

template <typename Is>
const GateSpacing::Gate* GateSpacing::FirstGate(Is&& is) const {
  const uint64_t oldest = count_ > kRemembered ? count_ - kRemembered : 0;
  for (uint64_t i = oldest; i != count_; ++i) {
    if (is(gates_[i % kRemembered])) return &gates_[i % kRemembered];
  }
  return nullptr;
}

bool GateSpacing::Stopped(uint64_t passed, uint64_t retired, uint64_t submitted) const {
  if (retired >= submitted) return true;
  MutexLock lock(mutex_);
  // The first such gate that the device has not passed: it waits there when everything before has retired.
  const Gate* gate = FirstGate([&](const Gate& each) {
    return each.pausable && (passed == ipc::kNonePassed || each.position > passed);
  });
  return gate != nullptr && retired >= gate->position;
}

uint64_t GateSpacing::OpenEnd(uint64_t passed, uint64_t retired, uint64_t submitted) const {
  MutexLock lock(mutex_);
  const Gate* gate = FirstGate([&](const Gate& each) {
    return each.position >= retired && (passed == ipc::kNonePassed || each.position > passed);
  });
  return gate == nullptr ? submitted : gate->position;
}

void GateSpacing::Reset() {
  MutexLock lock(mutex_);
  last_gate_ = last_reporting_gate_ = last_access_ = last_report_ = 0;
  last_report_at_.store(TimePoint{}, std::memory_order_relaxed);
  any_gate_ = observed_ = false;
  pace_ = Pace{};
  count_ = 0;
}

void GateSpacing::ResetAfterFork() { mutex_.ResetAfterFork(); }

}  // namespace xsched::preempt
