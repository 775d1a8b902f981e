// Reservation: each process gets what is guaranteed to it in each period, and what is left over goes round by
// weight. A process never gets more than its limit.
//
// For tenants who pay for a part of a device: what is guaranteed is theirs whenever they want it, others
// borrow what they do not use, and a limit shows nobody more than was paid for. A queue's reservation is: so
// many microseconds of each period (as SCHED_DEADLINE), at most so many of each period (as cpu.max), and how
// much of an unused limit may be used later (as cpu.max.burst). A process has the largest guarantee and the
// strictest limit of its queues.
//
// One process runs at a time. Of those with something left of their guarantee, it is the one whose period
// ends first. As long as all guarantees together are not more than the device (the server admits no more),
// each is met in each period. If nobody has anything left, the others run in turn, for a time slice each, so
// that each gets time in proportion to its weight. That time is not taken off a guarantee.
//
// Limits hold even if the device would be idle: this is the only policy that leaves work undone, and only
// because it was asked to. Whoever waits for a queue that has used up its limit waits as well. A limit counts
// all time that a process receives, also in the watchdog's windows, and where it runs for one that waits for
// it.
//
// Where one process at a time is on the device, a process with a limit keeps it for a shortest turn, even if
// that is more than the limit. The next periods have so much less.
//
// It fails where commands are longer than what is left of a guarantee or of a limit: they run to their ends,
// and the next periods have so much less. What others do not get of their guarantees meanwhile, they get in
// their next periods. So guarantees and limits hold over many periods, and in a period but for a command.
#include <algorithm>
#include <limits>
#include <utility>

#include "sched/core/policy.h"
#include "sched/core/reservation.h"
#include "sched/core/stride.h"

namespace xsched::sched::reserve {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyReservation,
    .name = "RESERVE",
    .summary = "reservation: guarantees in each period, the rest by weight, and limits for processes",
    .hints = {.weight = true, .reservation = true, .timeslice = true},
    .granularity = Granularity::kProcess,
    .charges_overruns = true,
    .keeps_busy = true,
    .has_limits = true,
};

using std::chrono::microseconds;

// How much of its guarantee a process may keep, if it wanted it all the time: what it has of so much time.
// That is several long commands of others.
constexpr microseconds kLongestOwed{100'000};
// A limit keeps a process from running for that long and a period at most, whatever its commands have used
// up: others may wait for it.
constexpr microseconds kLongestDebt{1'000'000};

struct ClaimantState {
  bool known;               // the other members are valid
  bool borrows;             // the last decision gave it of what is left over
  bool guaranteed_turn;     // its last turn was of its guarantee. So is what its commands do after that.
  bool wanted;              // it could have run in all of its present period
  Duration counted;         // service up to the last decision
  Duration counted_in_all;  // likewise, for the limit

  // Of the guarantee. Less than 0: it has had more, and the next period has so much less. More than is
  // guaranteed: it has had less, because of a long command of another.
  Duration guaranteed;
  Duration left;
  TimePoint period_end;
  // Of the limit, likewise.
  Duration limit;
  Duration allowed;
  TimePoint refill_at;

  Stride stride;  // of what is left over
  Duration turn;  // what is left of its time slice
};

struct DeviceState {
  StrideClock clock;
  bool limits;  // some have used up their limits
};

int64_t PeriodsUntil(TimePoint now, TimePoint first, Duration period) { return 1 + (now - first) / period; }

class Reservation final : public PolicyWithState<ClaimantState, NoState, DeviceState> {
 public:
  using PolicyWithState::PolicyWithState;

  // Brings all accounts up to date.
  TimePoint FindLimits(const DeviceView& device) const override {
    TimePoint next = kNever;
    StateOf(device).limits = false;
    for (QueueView& claimant : device.ready) {
      ClaimantState& state = StateOf(claimant);
      Update(claimant, device);
      claimant.limited_until = KeepsTurn(claimant, device) ? TimePoint{} : LimitedUntil(state, claimant);
      if (claimant.limited_until <= device.now) {
        if (state.limit > Duration::zero()) claimant.left_of_limit = state.allowed;
        continue;
      }
      state.wanted = false;
      state.stride.Leave();
      StateOf(device).limits = true;
      next = std::min(next, claimant.limited_until);
    }
    return next;
  }

  TimePoint Decide(const DeviceView& device) const override {
    LevelStrides(
        device.ready, StateOf(device).clock, InSeconds(device.timeslice),
        [](QueueView& claimant) { return &StateOf(claimant).stride; }, WeightOf);
    TimePoint next = kNever;
    QueueView* keeps_turn = nullptr;
    QueueView* guaranteed = nullptr;
    QueueView* borrower = nullptr;
    for (QueueView& claimant : device.ready) {
      claimant.run = false;
      const ClaimantState& state = StateOf(claimant);
      // When its next period begins.
      if (state.guaranteed > Duration::zero()) next = std::min(next, state.period_end);
      if (KeepsTurn(claimant, device)) keeps_turn = &claimant;
      if (HasGuaranteeLeft(state) &&
          (guaranteed == nullptr || state.period_end < StateOf(*guaranteed).period_end))
        guaranteed = &claimant;
      if (borrower == nullptr || BorrowsBefore(state, StateOf(*borrower))) borrower = &claimant;
    }
    if (keeps_turn != nullptr) {
      keeps_turn->run = true;
      return std::min(next, keeps_turn->running_since + device.least_turn);
    }
    QueueView& chosen = guaranteed != nullptr ? *guaranteed : *borrower;
    chosen.run = true;
    ClaimantState& state = StateOf(chosen);
    state.guaranteed_turn = guaranteed != nullptr;
    Duration until = guaranteed != nullptr ? state.left : Duration::max();
    if (guaranteed == nullptr) {
      if (!state.borrows || state.turn <= Duration::zero()) state.turn = device.timeslice;
      state.turn = std::min(state.turn, device.timeslice);  // the user may have made it shorter
      // Those that wait for their limits may run on, and what they have of the time is found out at its end.
      if (device.ready.size() > 1 || StateOf(device).limits) until = state.turn;
      // A guarantee may interrupt a borrower. Afterwards the borrower goes on with its time slice.
      for (QueueView& claimant : device.ready) StateOf(claimant).borrows = &claimant == &chosen;
    }
    if (state.limit > Duration::zero()) until = std::min(until, state.allowed);
    if (until != Duration::max()) next = std::min(next, device.now + std::max(until, kShortestTurn));
    return next;
  }

  bool CanHold(const Hints&, const Hints&) const override { return true; }

  // Slices in proportion would give what an idle process leaves to the guaranteed ones as well.
  Division Divide(std::span<ProcessView> processes) const override { return OnlyTheRunningOne(processes); }

 private:
  static double WeightOf(const QueueView& claimant) { return std::max(claimant.hints.weight, WEIGHT_MIN); }

  static bool HasGuaranteeLeft(const ClaimantState& state) {
    return state.guaranteed > Duration::zero() && state.left > Duration::zero();
  }

  static bool BorrowsBefore(const ClaimantState& state, const ClaimantState& other) {
    const bool goes_on = state.borrows && state.turn > Duration::zero();
    const bool other_goes_on = other.borrows && other.turn > Duration::zero();
    return goes_on != other_goes_on ? goes_on : state.stride.pass < other.stride.pass;
  }

  // A limit may be so short that its time is over before the process is on the device: then it would never
  // work. So it has a whole turn, and the next periods have so much less.
  static bool KeepsTurn(const QueueView& claimant, const DeviceView& device) {
    return claimant.running && StateOf(claimant).limit > Duration::zero() &&
           device.now < claimant.running_since + device.least_turn;
  }

  // When its limit lets it run.
  static TimePoint LimitedUntil(const ClaimantState& state, const QueueView& claimant) {
    if (state.limit == Duration::zero() || state.allowed > Duration::zero()) return TimePoint{};
    const int64_t periods_more = -state.allowed / state.limit;
    return state.refill_at + periods_more * microseconds(claimant.hints.period_us);
  }

  static void Update(QueueView& claimant, const DeviceView& device) {
    ClaimantState& state = StateOf(claimant);
    Charge(state, claimant);
    state.wanted &= !claimant.newly_ready;
    const bool begins = claimant.newly_ready || state.guaranteed == Duration::zero();
    TakeHints(state, claimant, device.now);
    if (state.guaranteed > Duration::zero()) RenewGuarantee(state, begins, claimant.hints, device.now);
    if (state.limit > Duration::zero()) RenewLimit(state, claimant.hints, device.now);
    state.borrows &= !claimant.newly_ready;
    if (claimant.newly_ready) state.stride.Leave();
  }

  static void Charge(ClaimantState& state, const QueueView& claimant) {
    const Duration before = std::exchange(state.counted, claimant.service);
    const Duration before_in_all = std::exchange(state.counted_in_all, claimant.service_in_all);
    if (!state.known) return;
    const Duration received = claimant.service - before;
    if (state.limit > Duration::zero()) state.allowed -= claimant.service_in_all - before_in_all;
    if (state.guaranteed > Duration::zero() && state.guaranteed_turn) {
      state.left -= received;
      return;
    }
    state.turn -= received;
    state.stride.Charge(InSeconds(received), WeightOf(claimant));
  }

  // Other hints begin with the next period. A guarantee or a limit that goes is remembered until it comes
  // back. So nobody gets a fresh period by them.
  static void TakeHints(ClaimantState& state, const QueueView& claimant, TimePoint now) {
    const Duration period = microseconds(claimant.hints.period_us);
    const Duration guaranteed = microseconds(claimant.hints.guarantee_us);
    const Duration limit = microseconds(claimant.hints.limit_us);
    if (guaranteed != state.guaranteed && guaranteed > Duration::zero()) {
      // What the new guarantee would give it until the present period ends.
      const double rest = std::max(1.0, InSeconds(state.period_end - now) / InSeconds(period));
      const double most = static_cast<double>(guaranteed.count()) * rest;
      if (static_cast<double>(state.left.count()) > most) state.left = Duration(static_cast<int64_t>(most));
    }
    if (limit > Duration::zero() && state.limit == Duration::zero()) BeginLimit(state, limit, period, now);
    state.guaranteed = guaranteed;
    state.limit = limit;
    state.known = true;
  }

  // The claimant had no limit, or has it anew. What was unused in between is no burst.
  static void BeginLimit(ClaimantState& state, Duration limit, Duration period, TimePoint now) {
    if (now >= state.refill_at) {
      state.allowed += PeriodsUntil(now, state.refill_at, period) * limit;
      state.refill_at = now + period;
    }
    state.allowed = std::min(state.allowed, limit);
  }

  static void RenewLimit(ClaimantState& state, const Hints& hints, TimePoint now) {
    state.allowed = std::max(state.allowed, -state.limit * kLongestDebt.count() / hints.period_us);
    if (now < state.refill_at) return;
    const Duration period = microseconds(hints.period_us);
    const int64_t periods = PeriodsUntil(now, state.refill_at, period);
    state.allowed =
        std::min(state.allowed + periods * state.limit, state.limit + microseconds(hints.burst_us));
    state.refill_at += periods * period;
  }

  // `begins`: the claimant was idle, or had no guarantee.
  static void RenewGuarantee(ClaimantState& state, bool begins, const Hints& hints, TimePoint now) {
    state.left = std::max(state.left, -state.guaranteed * kLongestDebt.count() / hints.period_us);
    const Duration period = microseconds(hints.period_us);
    if (begins) {
      // It has its period from now on, if it could not use what is left by the end of the present one without
      // more than its part of the device.
      const double rest = InSeconds(state.period_end - now);
      const double part = GuaranteeOf(hints);
      if (InSeconds(state.left) > rest * part) {
        state.left = state.guaranteed;
        state.period_end = now + period;
        state.wanted = true;
        return;
      }
    }
    if (now < state.period_end) return;
    const int64_t periods = PeriodsUntil(now, state.period_end, period);
    Duration most = state.guaranteed;
    if (state.wanted) {
      most += state.guaranteed * kLongestOwed.count() / hints.period_us;
    } else {
      state.left = std::min(state.left, Duration::zero());
    }
    state.left = std::min(most, state.left + periods * state.guaranteed);
    state.period_end += periods * period;
    state.wanted = true;
  }
};

constinit const Reservation policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::reserve
