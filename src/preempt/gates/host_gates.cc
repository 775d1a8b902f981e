#include "preempt/gates/host_gates.h"

namespace xsched::preempt {
namespace {

// Where it harms nobody what a queue does after a hold, the device always has the next command while the host
// opens a gate, and gates are opened less often.
constexpr int64_t kLeastIfBusy = 2;
constexpr int kFactorIfBusy = 4;

// The state has changed from `before` to `now`, perhaps before a gate of ours existed. Then the thread that
// changed it did not open our gate. Without a scheduler, no other thread ever will.
bool ConcernsGates(const GateChain::Now& before, const GateChain::Now& now) {
  return now.retired != before.retired || now.hold != before.hold || (!now.hold && !now.bounded);
}

}  // namespace

GateChain::Now HostGates::Now() const {
  const bool ours = !queue_.destroying() && !queue_.process().shut_down();
  const uint32_t flags = queue_.flags();
  return {queue_.retired(), queue_.Held(), ours && (flags & ipc::kFlagGated) != 0, flags != 0, queue_.Now()};
}

GateChain::Limits HostGates::Limits() const {
  const LaunchConfig config = queue_.config();
  GateChain::Limits limits{config.threshold, config.batch_size, start_.host_gate_latency};
  if (queue_.KeepsBusy()) {
    limits.latency *= kFactorIfBusy;
    limits.least = kLeastIfBusy;
  }
  limits.out_of_order = ops().out_of_order;
  return limits;
}

bool HostGates::BeforeLaunch(uint64_t number, uint32_t) {
  const GateChain::Now seen = Now();
  chain_.BeforeLaunch(number, seen, Limits(), *this);
  if (!chain_.HasClosed() || !ConcernsGates(seen, Now())) return false;
  // The end of the queue waits for a launch for a second at most. So a launch makes no call that may take
  // longer, unless no other thread would open the gate.
  const bool later = ops().opening_runs_commands ? GateIsDue() : !Advance();
  if (later && !queue_.signals().GiveBackLater() && ops().opening_runs_commands) Advance();
  return false;
}

bool HostGates::Advance() {
  GateChain::Advanced advanced;
  do {
    chain_.OnRetired(queue_.retired(), queue_.markers.reached_at());
    advanced = chain_.Advance(queue_.submitted(), Now(), Limits(), *this);
  } while (advanced.outdated && !advanced.refused);
  if (advanced == GateChain::Advanced{}) ReportIfDrained();
  return !advanced.refused;
}

bool HostGates::GateIsDue() {
  chain_.OnRetired(queue_.retired(), queue_.markers.reached_at());
  if (chain_.IsDue(queue_.submitted(), Now(), Limits())) return true;
  ReportIfDrained();
  return false;
}

// The agent comes here when something has retired in front of a closed gate.
void HostGates::ReportIfDrained() {
  if (queue_.DrainIsAwaited()) FlowControl::ReportIfDrained(chain_.OpenEnd(queue_.submitted()));
}

bool HostGates::WaitStopped(bool (*)(const void*), const void*) {
  const uint64_t newest = queue_.issued();
  const uint64_t open_end = chain_.OpenEnd(newest);
  if (open_end == newest) return WaitRetired(newest);
  // There is a marker before every gate.
  queue_.waiters.Await([&] { return queue_.retired() >= open_end; });
  return true;
}

}  // namespace xsched::preempt
