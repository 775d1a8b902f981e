#include "sched/sim/random_history.h"

#include <algorithm>
#include <array>

#include "sched/core/policy.h"

namespace xsched::sched::sim {
namespace {

// A stream of random numbers, seeded by one of rapidcheck's, because each of those is costly.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int Below(int count) { return static_cast<int>(Next() % static_cast<uint64_t>(count)); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Percent(int chance) { return Below(100) < chance; }
  Duration Between(Duration low, Duration high) {
    return low + microseconds(static_cast<int64_t>(
                     Next() % static_cast<uint64_t>((high - low) / microseconds(1) + 1)));
  }
  template <typename T, size_t n>
  T Of(const T (&list)[n]) {
    return list[Below(static_cast<int>(n))];
  }

 private:
  uint64_t state_;
};

constexpr Priority kClasses[] = {0, 5, 10, -5};

// The default most often, and then one of those for which promises 2 and 4 are checked.
XPolicyType RandomPolicy(Dice& dice) {
  if (dice.Percent(60)) return kDefaultPolicy;
  const bool checked = dice.Percent(50);
  XPolicyType known[kPolicyMax] = {};
  int count = 0;
  for (int type = 0; type < kPolicyMax; ++type) {
    const Policy* policy = FindPolicyByNumber(static_cast<uint32_t>(type));
    // A policy that compares all devices leaves some unused, which promise 1 rules out.
    if (policy == nullptr || policy->info().scope == Scope::kAllDevices) continue;
    if (checked && policy->info().claim == ClaimBy::kOther) continue;
    known[count++] = policy->type();
  }
  return known[dice.Below(count)];
}

ProcessScript RandomProcess(Dice& dice, int level) {
  ProcessScript process;
  process.level = level;
  process.overrun = dice.Of({0, 0, 0, 1, 2});
  process.reaction = dice.Of({microseconds(20), microseconds(100), microseconds(300)});
  process.call = dice.Of({microseconds(100), microseconds(300), microseconds(600)});
  if (level == 3 && dice.Percent(30)) {
    process.faults_from = dice.Below(6);
    process.faults = dice.Between(1, 3);
    process.fault = dice.Of({Fault::kRefused, Fault::kTimedOut});
  }
  return process;
}

QueueScript RandomQueue(Dice& dice, const History& history, int classes, int devices) {
  QueueScript queue;
  queue.process = static_cast<int>(history.processes.size()) - 1;
  queue.device = dice.Below(devices);
  queue.priority = kClasses[dice.Below(classes)];
  queue.utilization = dice.Of({100, 100, 50, 10, 0});
  queue.weight = dice.Of({100, 100, 400, 10});
  queue.guarantee_us = dice.Of({0, 0, 1000, 3000});
  queue.latency_target_us = dice.Of({0, 0, 5000, 100'000});
  queue.style = dice.Of({Style::kWaits, Style::kPeriodic, Style::kLaunchesAhead});
  queue.command = dice.Of({microseconds(20), microseconds(500), microseconds(1000), microseconds(2000),
                           microseconds(2000), microseconds(5000), microseconds(10000), microseconds(30000)});
  queue.commands = queue.command < microseconds(100) ? 100 : dice.Between(1, 4);
  if (queue.style == Style::kWaits)
    queue.pause =
        dice.Of({milliseconds(0), milliseconds(0), milliseconds(1), milliseconds(10), milliseconds(50)});
  if (queue.style == Style::kPeriodic)
    queue.pause = dice.Of({milliseconds(10), milliseconds(20), milliseconds(50), milliseconds(150)});
  if (dice.Percent(30)) queue.start = dice.Between(Duration::zero(), history.length / 2);
  if (dice.Percent(25)) queue.end = dice.Between(queue.start, history.length);
  if (dice.Percent(12)) {
    queue.long_task = dice.Below(3);
    queue.long_command = dice.Of(
        {milliseconds(10), milliseconds(50), milliseconds(150), milliseconds(500), milliseconds(3000)});
  }
  const int index = static_cast<int>(history.queues.size());
  if (index > 0 && dice.Percent(25)) {
    queue.wait = dice.Of({Wait::kKnown, Wait::kHidden, Wait::kHidden});
    queue.target = dice.Below(index);
    queue.every = dice.Of({1, 2, 5, 20});
  }
  return queue;
}

// Two queues of different processes whose kernels wait for each other.
void MakeGang(Dice& dice, History& history) {
  auto& queues = history.queues;
  const int count = static_cast<int>(queues.size());
  const int one = dice.Below(count);
  const int other = dice.Below(count);
  QueueScript& first = queues[static_cast<size_t>(one)];
  QueueScript& second = queues[static_cast<size_t>(other)];
  if (first.process == second.process || first.wait == Wait::kGang || second.wait == Wait::kGang) return;
  for (QueueScript* queue : {&first, &second}) {
    queue->wait = Wait::kGang;
    queue->style = first.style == Style::kPeriodic ? Style::kWaits : first.style;
    queue->pause = {};
    queue->commands = 1;
    queue->long_task = -1;
    queue->every = 1;
    queue->command = std::max(queue->command, Duration(microseconds(500)));
  }
  first.target = other;
  second.target = one;
  if (!dice.Percent(50)) return;
  const int job = static_cast<int>(std::max(first.process, second.process)) + 1;
  history.processes[static_cast<size_t>(first.process)].job = job;
  history.processes[static_cast<size_t>(second.process)].job = job;
}

Event RandomEvent(Dice& dice, const History& history, int classes) {
  Event event;
  event.at = dice.Between(Duration::zero(), history.length);
  event.kind = dice.Of({EventKind::kKill, EventKind::kStop, EventKind::kStop, EventKind::kSuspend,
                        EventKind::kHints, EventKind::kPolicy});
  switch (event.kind) {
    case EventKind::kKill:
      event.subject = dice.Below(static_cast<int>(history.processes.size()));
      event.notice = dice.Between(microseconds(50), milliseconds(3));
      break;
    case EventKind::kStop:
      event.subject = dice.Below(static_cast<int>(history.processes.size()));
      event.notice = dice.Between(milliseconds(1), milliseconds(80));
      event.length = dice.Percent(30) ? kAlways : dice.Between(milliseconds(1), milliseconds(400));
      break;
    case EventKind::kSuspend:
      event.subject = dice.Below(static_cast<int>(history.queues.size()));
      event.length = dice.Percent(30) ? kAlways : dice.Between(milliseconds(1), milliseconds(300));
      break;
    case EventKind::kHints:
      event.subject = dice.Below(static_cast<int>(history.queues.size()));
      event.priority = kClasses[dice.Below(classes)];
      event.utilization = dice.Of({100, 50, 0});
      break;
    case EventKind::kPolicy:
      event.policy = RandomPolicy(dice);
      break;
  }
  return event;
}

History Generate(uint64_t seed, int size) {
  Dice dice(seed);
  History history;
  history.policy = RandomPolicy(dice);
  history.length = dice.Between(milliseconds(150), milliseconds(250 + 8 * size));
  const int classes = dice.Between(1, 4);
  const int devices = dice.Of({1, 1, 1, 2, 3});
  const int level = dice.Of({1, 2, 3, 3, 3, 3});
  const int processes = std::min(dice.Of({1, 2, 2, 3, 3, 3, 4, 4, 5, 6}), 2 + size / 10);
  for (int i = 0; i < processes; ++i) {
    history.processes.push_back(RandomProcess(dice, dice.Percent(5) ? dice.Between(1, 3) : level));
    const int queues = dice.Of({1, 1, 1, 1, 2, 3});
    for (int j = 0; j < queues; ++j) history.queues.push_back(RandomQueue(dice, history, classes, devices));
  }
  if (dice.Percent(15)) MakeGang(dice, history);
  const int events = dice.Of({0, 0, 1, 2, 3});
  for (int i = 0; i < events; ++i) history.events.push_back(RandomEvent(dice, history, classes));
  history.survivor = dice.Below(processes);
  history.survivor_works = dice.Percent(20);
  for (QueueScript& queue : history.queues) queue.room = dice.Between(700, 1020);
  history.timeslice = dice.Of({milliseconds(5), milliseconds(5), milliseconds(1), milliseconds(20)});
  return history;
}

// RESERVE decides, at least at first, and some queues have limits.
History GenerateWithLimits(uint64_t seed, int size) {
  History history = Generate(seed, size);
  Dice dice(~seed);
  history.policy = kPolicyReservation;
  for (QueueScript& queue : history.queues) {
    queue.limit_us = dice.Of({0, 1000, 3000, 3000, 8000});
    if (queue.limit_us == 0) continue;
    queue.limit_us = std::max(queue.limit_us, queue.guarantee_us);
    queue.burst_us = dice.Of({int64_t{0}, int64_t{0}, queue.limit_us / 2, queue.limit_us});
  }
  return history;
}

// ---- smaller histories ----

void RemoveQueue(History& history, size_t at) {
  const int removed = static_cast<int>(at);
  history.queues.erase(history.queues.begin() + removed);
  for (QueueScript& queue : history.queues) {
    if (queue.target == removed) {
      queue.wait = Wait::kNone;
      queue.target = 0;
    }
    queue.target -= queue.target > removed;
  }
  const auto is_of_queue = [](const Event& event) {
    return event.kind == EventKind::kSuspend || event.kind == EventKind::kHints;
  };
  std::erase_if(history.events, [&](const Event& e) { return is_of_queue(e) && e.subject == removed; });
  for (Event& event : history.events) event.subject -= is_of_queue(event) && event.subject > removed;
}

void RemoveProcess(History& history, size_t at) {
  const int removed = static_cast<int>(at);
  for (size_t i = history.queues.size(); i-- > 0;) {
    if (history.queues[i].process == removed) RemoveQueue(history, i);
  }
  history.processes.erase(history.processes.begin() + removed);
  for (QueueScript& queue : history.queues) queue.process -= queue.process > removed;
  const auto is_of_process = [](const Event& event) {
    return event.kind == EventKind::kKill || event.kind == EventKind::kStop;
  };
  std::erase_if(history.events, [&](const Event& e) { return is_of_process(e) && e.subject == removed; });
  for (Event& event : history.events) event.subject -= is_of_process(event) && event.subject > removed;
  if (history.survivor == removed) history.survivor = 0;
  history.survivor -= history.survivor > removed;
}

// All histories that differ from `history` in one respect, and are simpler.
std::vector<History> Smaller(const History& history) {
  std::vector<History> smaller;
  auto with = [&](auto&& change) {
    History copy = history;
    change(copy);
    smaller.push_back(std::move(copy));
  };
  auto set = [&]<typename T>(size_t i, auto list, T QueueScript::*field, T value) {
    if ((history.*list)[i].*field != value) with([&](History& h) { (h.*list)[i].*field = value; });
  };
  for (size_t i = 0; i < history.processes.size() && history.processes.size() > 1; ++i)
    with([i](History& h) { RemoveProcess(h, i); });
  for (size_t i = 0; i < history.queues.size() && history.queues.size() > 1; ++i)
    with([i](History& h) { RemoveQueue(h, i); });
  for (size_t i = 0; i < history.events.size(); ++i)
    with([i](History& h) { h.events.erase(h.events.begin() + static_cast<std::ptrdiff_t>(i)); });
  if (history.survivor_works) with([](History& h) { h.survivor_works = false; });
  for (Duration length : {history.length / 2, history.length * 9 / 10}) {
    if (length >= milliseconds(20))
      with([length](History& h) { h.length = length / milliseconds(1) * milliseconds(1); });
  }
  if (history.timeslice != History{}.timeslice) with([](History& h) { h.timeslice = History{}.timeslice; });
  for (size_t i = 0; i < history.processes.size(); ++i) {
    const ProcessScript& process = history.processes[i];
    const ProcessScript usual{.level = process.level};
    if (process.faults != 0)
      with([i](History& h) { h.processes[i].faults = h.processes[i].faults_from = 0; });
    if (process.overrun != 0) with([i](History& h) { h.processes[i].overrun = 0; });
    if (process.job != 0) with([i](History& h) { h.processes[i].job = 0; });
    if (process.tenant != 0) with([i](History& h) { h.processes[i].tenant = 0; });
    if (process.reaction != usual.reaction || process.call != usual.call) {
      with([i, usual](History& h) {
        h.processes[i].reaction = usual.reaction;
        h.processes[i].call = usual.call;
      });
    }
  }
  constexpr auto kQueues = &History::queues;
  for (size_t i = 0; i < history.queues.size(); ++i) {
    const QueueScript& queue = history.queues[i];
    if (queue.wait != Wait::kGang) {
      set(i, kQueues, &QueueScript::wait, Wait::kNone);
      set(i, kQueues, &QueueScript::every, 1);
      set(i, kQueues, &QueueScript::style, Style::kLaunchesAhead);
      if (queue.style == Style::kPeriodic) set(i, kQueues, &QueueScript::style, Style::kWaits);
    }
    if (queue.wait == Wait::kNone) set(i, kQueues, &QueueScript::target, 0);
    set(i, kQueues, &QueueScript::long_task, -1);
    if (queue.long_task < 0) set(i, kQueues, &QueueScript::long_command, Duration::zero());
    set(i, kQueues, &QueueScript::device, 0);
    set(i, kQueues, &QueueScript::start, Duration::zero());
    set(i, kQueues, &QueueScript::start, Duration(queue.start / milliseconds(1) * milliseconds(1)));
    set(i, kQueues, &QueueScript::end, kAlways);
    if (queue.end != kAlways)
      set(i, kQueues, &QueueScript::end, Duration(queue.end / milliseconds(1) * milliseconds(1)));
    set(i, kQueues, &QueueScript::commands, 1);
    set(i, kQueues, &QueueScript::room, QueueScript{}.room);
    set(i, kQueues, &QueueScript::command, Duration(milliseconds(2)));
    set(i, kQueues, &QueueScript::utilization, 100);
    set(i, kQueues, &QueueScript::weight, 100);
    set(i, kQueues, &QueueScript::guarantee_us, int64_t{0});
    set(i, kQueues, &QueueScript::burst_us, int64_t{0});
    if (queue.burst_us == 0 && queue.guarantee_us == 0) set(i, kQueues, &QueueScript::limit_us, int64_t{0});
    set(i, kQueues, &QueueScript::latency_target_us, LatencyTarget{NO_LATENCY_TARGET});
    set(i, kQueues, &QueueScript::priority, 0);
    if (queue.style == Style::kWaits) set(i, kQueues, &QueueScript::pause, Duration::zero());
    if (queue.style == Style::kPeriodic) set(i, kQueues, &QueueScript::pause, Duration(milliseconds(20)));
  }
  for (size_t i = 0; i < history.events.size(); ++i) {
    const Event& event = history.events[i];
    for (Duration at : {event.at / 2, Duration(event.at / milliseconds(1) * milliseconds(1))}) {
      if (at != event.at)
        with([i, at](History& h) { h.events[i].at = at / microseconds(100) * microseconds(100); });
    }
    if (event.kind == EventKind::kStop && event.notice > milliseconds(2))
      with([i](History& h) { h.events[i].notice = milliseconds(1); });
    if (event.length != kAlways && (event.kind == EventKind::kStop || event.kind == EventKind::kSuspend))
      with([i](History& h) { h.events[i].length = kAlways; });
  }
  // Each step must make it smaller, so that the search ends.
  std::erase_if(smaller, [&](const History& other) { return ToString(other) == ToString(history); });
  return smaller;
}

History GenerateWithTenants(uint64_t seed, int size) {
  History history = Generate(seed, size);
  for (size_t i = 0; i < history.processes.size(); ++i)
    history.processes[i].tenant = 1 + static_cast<int>(i % 2);
  return history;
}

rc::Gen<History> GenerateWith(History (*generate)(uint64_t seed, int size)) {
  return rc::Gen<History>([generate](const rc::Random& random, int size) {
    rc::Random numbers = random;
    return rc::shrinkable::shrinkRecur(generate(numbers.next(), size), [](const History& history) {
      return rc::seq::fromContainer(Smaller(history));
    });
  });
}

}  // namespace

rc::Gen<History> RandomHistory() { return GenerateWith(Generate); }
rc::Gen<History> RandomHistoryWithLimits() { return GenerateWith(GenerateWithLimits); }
rc::Gen<History> RandomHistoryWithTenants() { return GenerateWith(GenerateWithTenants); }

}  // namespace xsched::sched::sim
