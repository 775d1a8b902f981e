// Service level objectives: queues with a latency target meet it in 99 of 100 requests, and the others get
// all the time that this leaves.
//
// For serving beside batch jobs. A target counts from when a request came until it has ended
// (core/requests.h). As long as it can wait and still be in time, the others harvest the device. When one
// request has to start, all that wait are done before the others go on. So the device changes hands as rarely
// as the targets allow. They run together; but one at a time of those that cannot wait any more, the earliest
// due first.
//
// How long a request can wait is measured. Of the last 200 to 400 requests of a queue, the one that took
// longest from when it was to start until its end says how early the next one has to start. Less than one in
// 200 takes longer than all of them, whatever their lengths are. That time has everything in it that delayed
// a request: others with targets, commands that had to end first, the floor. A queue that is not known yet
// does not wait; what it lends of its slack grows with the number of requests that were measured, up to 200.
//
// The others never starve: while they have work, they get their floor, in pieces of a timeslice. If targets
// cannot be met beside it, they are missed. Requests that can still be in time take precedence over those
// that are late already, and both over the others. Those others run together, as they would without a policy;
// another policy behind this one in a chain decides among them: SLO/EEVDF.
//
// It fails where queues with targets ask for more than the device can do: the others get only their floor. It
// learns by requests. If they become longer at once, one is late.
#include <algorithm>
#include <utility>

#include "sched/core/policy.h"

namespace xsched::sched::slo {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyServiceLevelObjective,
    .name = "SLO",
    .summary = "service level objectives: latency targets are met, and the others get the rest",
    .hints = {.latency_target = true, .floor = true, .timeslice = true},
    .sees_processes = true,
    .charges_overruns = true,
};

using std::chrono::microseconds;

// If n requests are measured, about one in n + 1 takes longer than all of them.
constexpr uint32_t kMeasured = 200;
// A program sees the end of its request a little later than the scheduler does. So requests should need so
// much less than their target: 5 % of it.
constexpr int kReserve = 20;
// So that a hundred times that is in range: 115 days.
constexpr Duration kLongestPhase = std::chrono::hours(24) * 115;
constexpr int kMostApart = 20;  // time slices by which the others may be ahead of their floor, or behind it

// How long requests of a queue take from their start to their end.
struct Needed {
  Duration longest;  // of those of the present window of kMeasured requests
  uint32_t count;    // of these
  bool has_former;   // the next member is valid
  Duration longest_former;

  void Add(Duration needed) {
    longest = std::max(longest, needed);
    if (++count < kMeasured) return;
    longest_former = longest;
    has_former = true;
    longest = Duration::zero();
    count = 0;
  }
  // How long a request can wait.
  Duration Slack(Duration target) const {
    const Duration spare = target - target / kReserve - std::max(longest, longest_former);
    if (spare <= Duration::zero()) return Duration::zero();
    return has_former ? spare : spare / kMeasured * count;
  }
};

struct ClaimantState {
  TimePoint ready_since;  // of its present request
  TimePoint former_end;   // when the request before it ended
  bool started;           // the request waits no longer for the others: it is served, or those before it are
  // Valid if started. When it was to start; and whether others wanted the device then. If nobody waits for a
  // queue, the time at which it has finished is not exact.
  TimePoint start;
  bool had_rivals;
  Needed needed;
  // Of a queue without a target: its service up to the last decision. Valid if counts.
  Duration counted;
  bool counts;
};

// What is owed is counted from the beginning of a phase, so that it does not depend on how often the policy
// is asked.
struct DeviceState {
  TimePoint since;    // of the present phase, in which the next two members stay the same (SkipIdleTime)
  Floor floor;        // 0: nothing is due, because none has a target, or all have one
  bool harvesting;    // those without a target run
  bool owes;          // because of their floor
  Duration owed;      // of their floor when the phase began; at most a timeslice
  Duration received;  // by those without a target, since then
  TimePoint asked;    // when the last decision wanted to be asked again
};

class ServiceLevelObjectives final : public PolicyWithState<ClaimantState, NoState, DeviceState> {
 public:
  using PolicyWithState::PolicyWithState;

  TimePoint Decide(const DeviceView& device) const override {
    const TimePoint next = DecideNow(device);
    StateOf(device).asked = next;
    return next;
  }

  bool CanHold(const Hints& victim, const Hints& rival) const override {
    return HasTarget(victim) || HasTarget(rival);
  }

  Division Divide(std::span<ProcessView> processes) const override {
    auto has_target = [](const ProcessView& process) { return HasTarget(process.hints); };
    return std::ranges::any_of(processes, has_target) ? OnlyTheRunningOne(processes) : Division::kNone;
  }

 private:
  static TimePoint DecideNow(const DeviceView& device) {
    Floor floor = 0;  // 0: no queue without a target is ready
    bool serves = false;
    TimePoint first_start = kNever;
    Duration received{};
    DeviceState& state = StateOf(device);
    SkipIdleTime(state, device.now);
    for (const QueueView& queue : device.ready) {
      if (!HasTarget(queue.hints)) {
        floor = std::max(floor, queue.hints.floor);
        received += Received(queue);
        continue;
      }
      StateOf(queue).counts = false;  // what it receives now is no part of a floor
      TakeRequest(queue);
      serves |= StateOf(queue).started;
      first_start = std::min(first_start, LatestStart(queue));
    }
    const bool has_targets = first_start != kNever;
    const bool has_others = floor > 0;
    Receive(state, device, received);
    serves |= device.now >= first_start || !has_others;
    if (has_targets && serves) StartAll(device);
    const Duration owed = Owed(state, device);
    // Not sooner: a change of turns would cost more than the turn was worth.
    if (device.now >= state.since + kShortestTurn)
      state.owes = owed >= device.timeslice || (state.owes && owed > Duration::zero());
    const bool harvests = has_others && (!has_targets || !serves || state.owes);
    const Floor due = has_targets ? floor : 0;
    if (due != state.floor || harvests != state.harvesting)
      state = {device.now, due, harvests, state.owes, owed, Duration::zero(), device.now};
    if (!harvests) return Serve(device, state);
    for (QueueView& queue : device.ready) queue.run = !HasTarget(queue.hints);
    if (!has_targets) return kNever;
    return serves ? PhaseEnd(device.now, owed, 100 - floor) : first_start;
  }

  static bool HasTarget(const Hints& hints) { return hints.latency_target_us > 0; }
  static TimePoint DueAt(const QueueView& queue) {
    return queue.ready_since + microseconds(queue.hints.latency_target_us);
  }
  static TimePoint LatestStart(const QueueView& queue) {
    return queue.ready_since + StateOf(queue).needed.Slack(microseconds(queue.hints.latency_target_us));
  }
  // When `time` has come together, if `percent` of the time from now on count. Rounded up, so that it is not
  // too early. Nor is it sooner than a turn is worth: those that run may receive nothing yet, because the
  // device still has commands of others.
  static TimePoint PhaseEnd(TimePoint now, Duration time, int percent) {
    return now + std::max(Duration((time.count() * 100 + percent - 1) / percent), kShortestTurn);
  }

  // What a queue without a target has received since the last decision that showed it.
  static Duration Received(const QueueView& queue) {
    ClaimantState& state = StateOf(queue);
    const Duration before = std::exchange(state.counted, queue.service);
    return std::exchange(state.counts, true) ? queue.service - before : Duration::zero();
  }

  // Measures the former request when the queue has a new one.
  static void TakeRequest(const QueueView& queue) {
    ClaimantState& state = StateOf(queue);
    if (state.ready_since == queue.ready_since) return;
    const bool is_measured = state.started && state.had_rivals && queue.finished_at != state.former_end &&
                             queue.finished_at >= state.start;
    if (is_measured) state.needed.Add(queue.finished_at - state.start);
    state.ready_since = queue.ready_since;
    state.former_end = queue.finished_at;
    state.started = false;
  }

  // If the decision is late, that is part of what a request needs.
  static void StartAll(const DeviceView& device) {
    for (QueueView& queue : device.ready) {
      if (!HasTarget(queue.hints)) continue;
      ClaimantState& state = StateOf(queue);
      if (state.started) continue;
      state.started = true;
      state.start = std::min(LatestStart(queue), device.now);
      state.had_rivals = device.ready.size() > 1;
    }
  }

  // If the policy is asked later than it wanted, nobody had work meanwhile, or the watchdog let all of them
  // run. Nothing is due for that time: it is as if the phase had begun so much later.
  static void SkipIdleTime(DeviceState& state, TimePoint now) {
    if (now > state.asked) state.since += now - state.asked;
  }

  // What those without a target have received, `more` of it since the last decision. However long a command
  // of one of them takes, they are ahead of their floor by some time slices at most, and behind it likewise.
  static void Receive(DeviceState& state, const DeviceView& device, Duration more) {
    const Duration due = state.owed + DueSince(state, device);
    const Duration most = kMostApart * device.timeslice;
    state.received = std::clamp(state.received + more, due - most, due + most);
  }
  static Duration DueSince(const DeviceState& state, const DeviceView& device) {
    return std::min(device.now - state.since, kLongestPhase) * state.floor / 100;
  }
  // What is owed to those without a target now.
  static Duration Owed(const DeviceState& state, const DeviceView& device) {
    return std::clamp(state.owed + DueSince(state, device) - state.received, Duration::zero(),
                      device.timeslice);
  }

  // A request that had nothing to do for a moment leaves the device unused in its pauses, or is over.
  static bool HasPaused(const QueueView& queue) { return queue.finished_at != StateOf(queue).former_end; }

  // Runs the requests that have started. If some of them have no slack left, one at a time of these: the one
  // that is due first, of those that can be in time; else of all. Those that have paused run beside it.
  static TimePoint Serve(const DeviceView& device, const DeviceState& state) {
    auto is_late = [&](const QueueView& queue) { return DueAt(queue) <= device.now; };
    auto comes_before = [&](const QueueView& one, const QueueView& other) {
      return is_late(one) != is_late(other) ? is_late(other) : DueAt(one) < DueAt(other);
    };
    QueueView* first = nullptr;  // of those without slack
    size_t without_slack = 0;
    TimePoint next = kNever;
    for (QueueView& queue : device.ready) {
      if (!HasTarget(queue.hints) || HasPaused(queue)) continue;
      if (LatestStart(queue) > device.now) {
        next = std::min(next, LatestStart(queue));
        continue;
      }
      ++without_slack;
      if (first == nullptr || comes_before(queue, *first)) first = &queue;
    }
    for (QueueView& queue : device.ready)
      queue.run = HasTarget(queue.hints) && (first == nullptr || first == &queue || HasPaused(queue));
    if (without_slack > 1 && !is_late(*first)) next = std::min(next, DueAt(*first));
    if (state.floor == 0) return next;
    const Duration missing = device.timeslice - Owed(state, device);
    return std::min(next, PhaseEnd(device.now, missing, state.floor));
  }
};

constinit const ServiceLevelObjectives policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::slo
