#include "preempt/gates/device_gates.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "ipc/control_access.h"

namespace xsched::preempt {
namespace {

// Longer than a device takes between reading a gate's words and reporting that it has passed the gate.
constexpr useconds_t kStoppedPollUs = 10;

// Where time slices serve the rival before any gate could, gates only keep the queue from running again.
constexpr int kSlicedFactor = 10;

// How many launches at most are not asked whether a report is due.
constexpr uint64_t kMaxQuiet = 32;

// If there was no launch for this time, launching has paused.
constexpr Duration kLaunchingPaused = std::chrono::milliseconds(1);

}  // namespace

void DeviceGates::Reset() {
  spacing_.Reset();
  gates_failed_.store(false, std::memory_order_relaxed);
  pausable_.store(false, std::memory_order_relaxed);
  issued_when_full_.store(0, std::memory_order_relaxed);
  ipc::NoGatePassed(queue_.block());
}

bool DeviceGates::BeforeLaunch(uint64_t number, uint32_t flags) {
  if (gates_failed_.load(std::memory_order_relaxed)) return false;
  GateSpacing::Now now{};
  // In this order: a gate that has not reported by then will find the hold.
  now.hold = queue_.Held();
  now.retired = queue_.retired();
  now.gated = (flags & ipc::kFlagGated) != 0 || queue_.self_gated.load(std::memory_order_relaxed);
  now.pausable = pausable_.load(std::memory_order_relaxed);
  now.telling = now.pausable || (flags & ipc::kFlagChargesOverruns) != 0;
  // At level 1 no more is in flight than the launch config says.
  now.at_most = queue_.level() == kPreemptLevelBlock ? queue_.config().threshold : INT64_MAX;
  now.latency = start_.device_gate_latency * ((flags & ipc::kFlagSliced) != 0 ? kSlicedFactor : 1);
  now.clock = queue_.clock();
  const auto [place, quiet_until] = spacing_.Before(number, now);
  // Where every command reports, none is quiet.
  if (ops().finished != nullptr)
    queue_.quiet.Begin(number, std::min(quiet_until, number + kMaxQuiet), flags, now.retired);
  if (place == GateSpacing::Place::kNothing) return false;
  XControlWords words = Words(now.pausable, now.telling);
  if (place == GateSpacing::Place::kGate) words.retired = nullptr;
  if (ops().append_device_gate(hwq(), &words, number - 1) == kXSchedSuccess) {
    spacing_.Accesses(number, words.retired == nullptr ? 0 : number - 1);
  } else if (!gates_failed_.exchange(true)) {
    XSCHED_WARN("the driver refused a gate: this queue goes on unscheduled");
  }
  return false;
}

void DeviceGates::AfterLaunch(uint64_t number) {
  const uint64_t given = GivenWith(number);
  if (given == 0 || !spacing_.ReportAfter(given, ops().finished == nullptr, queue_.rough_clock())) return;
  const XControlWords words = Words();
  if (ops().append_progress(hwq(), &words, given) == kXSchedSuccess) spacing_.Accesses(given, given);
}

uint64_t DeviceGates::GivenWith(uint64_t number) const {
  const uint64_t issued = queue_.issued() + 1;
  // Read after that: if no more was submitted, no other launch is under way.
  const uint64_t submitted = queue_.submitted();
  if (issued >= submitted) return submitted;
  // A later launch may have returned in place of an earlier one. Then the report is early, but there is that
  // later one, so the queue does not seem idle.
  return issued == number ? number : 0;
}

void DeviceGates::AppendLastReport() {
  if (!DeviceAtWork() || AppendReport()) return;
  // A failed context accepts no report, and earlier reports will not come either.
  if (ops().finished != nullptr && !queue_.Launching() && ops().finished(hwq())) NoMoreReports();
}

bool DeviceGates::AppendReport() {
  if (ops().takes_reports != nullptr && !ops().takes_reports(hwq())) return false;
  const XControlWords words = Words();
  const uint64_t newest = queue_.issued();
  if (ops().append_progress(hwq(), &words, newest) != kXSchedSuccess) return false;
  spacing_.Accesses(newest, newest);
  return true;
}

void DeviceGates::NoMoreReports() { queue_.RetiredUpTo(std::max(queue_.issued(), spacing_.last_access())); }

bool DeviceGates::DeviceAtWork() const { return queue_.retired() < spacing_.last_access(); }

void DeviceGates::MakePausable() {
  pausable_.store(true, std::memory_order_relaxed);
  queue_.self_gated.store(true, std::memory_order_relaxed);
}

void DeviceGates::RequestProgress() {
  if (queue_.Idle()) return;
  if (queue_.draining()) {
    AskContext();
  } else {
    AskDevice();
  }
}

void DeviceGates::AskContext() {
  if (queue_.context_goes() || ops().context_lost == nullptr) return;
  if (ops().context_lost(hwq())) NoMoreReports();
}

// If a driver is asked about a full queue, it answers only when the queue is not full any more. So while many
// commands are unreported, it is asked only if launching has paused. The progress of the last commands must
// become known nevertheless.
bool DeviceGates::AnswerIsNear() {
  // Of a draining queue, the driver is asked only about its context.
  if (!queue_.MayBeFull() || queue_.draining()) return true;
  const uint64_t newest = queue_.submitted();
  const TimePoint now = queue_.Now();
  if (newest != seen_submitted_) {
    seen_submitted_ = newest;
    seen_at_ = now;
  }
  return !queue_.Held() && now >= seen_at_ + kLaunchingPaused;
}

// A stream is full if a thread is in a launch at every check. If launches return in between, commands retire,
// although they may not report: commands that were launched before the queue was tracked do not.
void DeviceGates::OnQuery() {
  FlowControl::OnQuery();
  const bool full = queue_.Launching() && queue_.MayBeFull();
  const uint64_t issued = full ? queue_.issued() : 0;
  const uint64_t before = issued_when_full_.exchange(issued, std::memory_order_relaxed);
  if (before != 0 && issued > before) ipc::CountMove(queue_.block());
}

uint64_t DeviceGates::OpenEnd() const {
  const uint64_t submitted = queue_.submitted();
  const uint64_t passed = ipc::ReadPassed(queue_.block());  // before what has retired behind it
  return spacing_.OpenEnd(passed, queue_.retired(), submitted);
}

void DeviceGates::PollOverrun() {
  const uint64_t end = OpenEnd();
  // Commands behind the last gate may not report. Only the driver knows.
  if (end == queue_.submitted() && AnswerIsNear()) RequestProgress();
  if (queue_.retired() < end) return;
  // A device that was just passing a gate has reported it by the second time.
  usleep(kStoppedPollUs);
  if (OverrunIsPolled() && OpenEnd() == end) ReportIfDrained(end);
}

// The gates on the device bound what is in flight. But commands of a queue that the program has suspended can
// still be dropped, so they are not launched.
bool DeviceGates::MayLaunch(uint64_t) const { return !queue_.HeldByProgram(); }

bool DeviceGates::NothingIsToCome() const {
  return ops().finished == nullptr && !queue_.Launching() && queue_.retired() >= spacing_.last_report();
}

bool DeviceGates::WaitStopped(bool (*stopped_otherwise)(const void*), const void* argument) {
  const uint64_t newest = queue_.issued();
  // The driver might block the report of a full stream until the suspension ends.
  if (ops().finished == nullptr && !queue_.Idle() && !queue_.MayBeFull()) AppendReport();
  // Check twice: a device that was just passing a gate has reported it by the second time.
  for (int seen = 0; seen < 2 && !queue_.destroying(); usleep(kStoppedPollUs)) {
    if (stopped_otherwise(argument)) return true;
    AskDevice();
    const bool nothing_is_to_come = NothingIsToCome();  // before the reports are read
    const uint64_t passed = ipc::ReadPassed(queue_.block());
    const bool stopped = spacing_.Stopped(passed, queue_.retired(), newest);
    if (!stopped && nothing_is_to_come) return false;
    seen = stopped ? seen + 1 : 0;
  }
  return true;
}

XControlWords DeviceGates::Words() const {
  ipc::ControlBlock& block = queue_.block();
  XControlWords words{};
  words.memory = start_.shared_memory;
  words.memory_size = start_.shared_memory_size;
  // The device reads `gate` and `open` as one word.
  words.gate = reinterpret_cast<uint32_t*>(&block.gate);
  words.gate_mask = ipc::kDeviceGateMask;
  words.retired = reinterpret_cast<uint64_t*>(&block.retired);
  return words;
}

XControlWords DeviceGates::Words(bool pausable, bool telling) const {
  ipc::ControlBlock& block = queue_.block();
  XControlWords words = Words();
  if (pausable) words.pause = reinterpret_cast<uint32_t*>(&block.pause);
  if (telling) words.passed = reinterpret_cast<uint64_t*>(&block.passed);
  return words;
}

}  // namespace xsched::preempt
