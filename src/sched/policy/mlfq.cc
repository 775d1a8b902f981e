// Multi-level feedback queue: short tasks before long ones, without knowing beforehand which are short. One
// queue runs at a time: of the highest level that has a ready queue, the one that has waited there longest.
//
// Each queue begins at the highest of four levels. When it has used up the quantum of its level (10, 20, 40,
// 80 ms), it goes down by one, to the end. When it has not run for 100 ms, it goes up by one.
//
// For machines where short interactive work meets batch jobs, and nobody gives hints.
//
// It fails where latency must be bounded, and where long tasks are the urgent ones. Programs that split their
// work into many short streams get more than others.
#include <algorithm>

#include "sched/core/policy.h"

namespace xsched::sched::mlfq {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyMultiLevelFeedbackQueue,
    .name = "MLFQ",
    .summary = "multi-level feedback queue: short tasks before long ones, without hints",
    .hints = {},
};

constexpr int kLevels = 4;
constexpr Duration kFirstQuantum = std::chrono::milliseconds(10);
constexpr Duration kShortestLeft = std::chrono::microseconds(200);
constexpr Duration kBoostAfter = std::chrono::milliseconds(100);

struct QueueState {
  int level;            // 0 is the highest
  bool known;           // the other members are valid
  Duration counted;     // the service that it had received when it came to its level
  TimePoint in_line;    // when it went to the end of its level
  TimePoint ran_until;  // when it last ran, or went up
  Duration seen;        // the service that it had received at the last decision
};

Duration Quantum(int level) { return kFirstQuantum * (1 << level); }

class MultiLevelFeedback final : public PolicyWithState<QueueState> {
 public:
  using PolicyWithState::PolicyWithState;

  TimePoint Decide(const DeviceView& device) const override {
    QueueView* next = nullptr;
    for (QueueView& queue : device.ready) {
      queue.run = false;
      Update(queue, device.now);
      if (next == nullptr || ComesBefore(queue, *next)) next = &queue;
    }
    next->run = true;
    QueueState& chosen = StateOf(*next);
    chosen.ran_until = device.now;
    if (device.ready.size() == 1) return kNever;
    // Its service grows more slowly than time passes while another queue runs because it is waited for.
    const Duration left = Quantum(chosen.level) - (next->service - chosen.counted);
    TimePoint ask_at = device.now + std::max(left, kShortestLeft);
    for (const QueueView& queue : device.ready) {
      if (!queue.run && StateOf(queue).level > 0) ask_at = std::min(ask_at, BoostAt(queue));
    }
    return ask_at;
  }

  bool CanHold(const Hints&, const Hints&) const override { return true; }

  Division Divide(std::span<ProcessView> processes) const override { return OnlyTheRunningOne(processes); }

 private:
  static TimePoint BoostAt(const QueueView& queue) { return StateOf(queue).ran_until + kBoostAfter; }

  static void Update(QueueView& queue, TimePoint now) {
    QueueState& state = StateOf(queue);
    if (!state.known) {
      state = {.level = 0,
               .known = true,
               .counted = queue.service,
               .in_line = now,
               .ran_until = now,
               .seen = queue.service};
      return;
    }
    // A queue that is alone runs, and becomes idle, without a decision. What it has received since then says
    // for how long it ran.
    const Duration unseen = queue.service - state.seen;
    state.seen = queue.service;
    state.ran_until = queue.running ? now : std::min(now, state.ran_until + unseen);
    if (queue.newly_ready) state.in_line = now;
    GoDown(queue, now);
    if (!queue.running) GoUp(queue, now);
  }

  static void GoDown(QueueView& queue, TimePoint now) {
    QueueState& state = StateOf(queue);
    Duration used = queue.service - state.counted;
    if (used < Quantum(state.level)) return;
    // It may have used up the quanta of several levels while it was alone.
    for (; state.level < kLevels - 1 && used >= Quantum(state.level); ++state.level)
      used -= Quantum(state.level);
    state.counted = queue.service;
    state.in_line = now;
  }

  static void GoUp(QueueView& queue, TimePoint now) {
    QueueState& state = StateOf(queue);
    while (state.level > 0 && now >= BoostAt(queue)) {
      --state.level;
      state.counted = queue.service;
      state.in_line = state.ran_until += kBoostAfter;
    }
  }

  static bool ComesBefore(const QueueView& queue, const QueueView& other) {
    const QueueState& one = StateOf(queue);
    const QueueState& two = StateOf(other);
    return one.level != two.level ? one.level < two.level : one.in_line < two.in_line;
  }
};

constinit const MultiLevelFeedback policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::mlfq
