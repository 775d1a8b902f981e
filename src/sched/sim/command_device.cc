#include "sched/sim/command_device.h"

#include <algorithm>

namespace xsched::sched::sim {
namespace {

// Queues that take turns run so much of their commands in one step: an exact order of each command would make
// short ones expensive, and changes latencies by a fraction of this.
constexpr uint64_t kStepsOfATask = 32;
constexpr Duration kLongestStep = std::chrono::milliseconds(1);
constexpr int64_t kMostBetweenGates = 512;

}  // namespace

CommandDevice::CommandDevice(const DeviceParameters& parameters, Order order,
                             std::vector<CommandQueue>& queues, size_t processes)
    : parameters_(parameters), order_(order), queues_(queues) {
  processes_.resize(Sliced() ? processes : 1);
}

void CommandDevice::Add(size_t queue) {
  Process& process = processes_[GroupOf(queues_[queue])];
  if (!process.last) process.last = queue;
}

// ---- queues ----

void CommandDevice::SetEnd(size_t queue, uint64_t last) {
  queues_[queue].head_end = last;
  changed_ = true;
  WorkChanged(queue);
}

void CommandDevice::WorkChanged(size_t index) {
  CommandQueue& queue = queues_[index];
  if (queue.busy == queue.HasWork()) return;
  queue.busy = !queue.busy;
  std::vector<size_t>& busy = processes_[GroupOf(queue)].busy;
  const auto at = std::lower_bound(busy.begin(), busy.end(), index);
  if (queue.busy) {
    busy.insert(at, index);
  } else {
    busy.erase(at);
  }
}

// True if `is` is true of any of the process's queues that have work.
template <typename Is>
bool CommandDevice::AnyBusy(const Process& process, Is&& is) const {
  for (size_t index : process.busy) {  // std::any_of is made for many
    if (is(queues_[index])) return true;
  }
  return false;
}

bool CommandDevice::Wants(const Process& process) const {
  if (process.slice == kNoSlice) return false;
  return AnyBusy(process,
                 [&](const CommandQueue& queue) { return queue.MayRun() || (Sliced() && queue.level > 1); });
}

int64_t CommandDevice::CommandsBetweenGates(const CommandQueue& queue) const {
  const Duration latency = queue.sliced ? parameters_.sliced_preempt_latency : parameters_.preempt_latency;
  return std::clamp<int64_t>(latency / std::max(queue.command, Duration(1)), 1, kMostBetweenGates);
}

// Level 1: how many of its commands the host launches ahead.
int64_t CommandDevice::CommandsInFlight(const CommandQueue& queue) const {
  const bool busy = queue.keeps_busy;
  const Duration latency = parameters_.preempt_latency * (busy ? parameters_.factor_if_busy : 1);
  const bool several = busy && queue.command <= latency;
  return std::clamp<int64_t>(latency / std::max(queue.command, Duration(1)),
                             several ? std::min(parameters_.least_if_busy, parameters_.in_flight) : 1,
                             parameters_.in_flight);
}

// What gates add to each command.
Duration CommandDevice::GateOf(const CommandQueue& queue) const {
  if (!queue.gated || parameters_.gate == Duration::zero()) return Duration::zero();
  if (queue.level > 1) return parameters_.gate / CommandsBetweenGates(queue);
  // The host opens a gate before the device comes there, unless commands run one by one.
  return CommandsInFlight(queue) == 1 ? parameters_.gate : Duration::zero();
}

Duration CommandDevice::LengthOf(const CommandQueue& queue) const {
  return std::max({queue.command, queue.launch, parameters_.launch, Duration(1)}) + GateOf(queue);
}

void CommandDevice::Open(size_t index) {
  queues_[index].open = true;
  changed_ = true;
}

void CommandDevice::Hold(size_t index) {
  CommandQueue& queue = queues_[index];
  changed_ = true;
  const uint64_t started = queue.retired + static_cast<uint64_t>(queue.left > Duration::zero());
  queue.open = false;
  if (queue.level > 1) {
    const auto between = static_cast<uint64_t>(CommandsBetweenGates(queue));
    queue.stop_at = (started + between - 1) / between * between;
  } else {
    queue.stop_at = queue.retired + static_cast<uint64_t>(CommandsInFlight(queue));
  }
}

// ---- time ----

// The command that has started has ended, `rest` ago.
void CommandDevice::Retire(Duration rest) {
  CommandQueue& queue = queues_[running_];
  // Mostly it is one, and a division takes longer than all else here.
  const uint64_t more =
      rest < length_ ? 0 : std::min(static_cast<uint64_t>(rest / length_), until_ - queue.retired - 1);
  queue.retired += 1 + more;
  queue.device_time += queue.command * static_cast<int64_t>(1 + more);
  queue.left = Duration::zero();
  if (queue.retired < until_) {
    const Duration begun = rest - length_ * static_cast<int64_t>(more);
    queue.left = begun > Duration::zero() ? length_ - begun : Duration::zero();
  }
  // As long as it runs on, there is nothing to choose, and next_ stays as it is.
  if (queue.left == Duration::zero()) {
    doing_ = Doing::kNothing;
    changed_ = true;
  }
  if (!queue.HasWork()) WorkChanged(running_);
}

TimePoint CommandDevice::Next() const {
  TimePoint next = kNever;
  if (!calls_.empty()) {
    const Call& call = calls_.front();
    next = call.stops && call.begin > at_ ? call.begin : call.end;
  }
  if (doing_ == Doing::kChanges) return std::min(next, change_end_);
  if (doing_ == Doing::kRuns) {
    const CommandQueue& queue = queues_[running_];
    next = std::min(next, at_ + queue.left + length_ * static_cast<int64_t>(until_ - queue.retired - 1));
  }
  if (contested_ && on_ >= 0 && doing_ != Doing::kNothing)
    next = std::min(next, slice_begun_ + SliceOf(processes_[static_cast<size_t>(on_)]));
  return next;
}

// ---- slices ----

void CommandDevice::SetSlice(int process, Duration slice, TimePoint now) {
  if (!Sliced()) return;
  Process& changed = processes_[static_cast<size_t>(process)];
  const bool off = slice == kNoSlice;
  const bool stops = off || changed.wanted == kNoSlice;
  const Duration time = off ? parameters_.off : stops ? parameters_.on : parameters_.slice_change;
  const TimePoint begin =
      std::max(now + parameters_.hold_latency, calls_.empty() ? TimePoint{} : calls_.back().end);
  changed.wanted = slice;
  changed_ = true;
  calls_.push_back({static_cast<size_t>(process), slice, begin, begin + time, stops});
}

void CommandDevice::EndCalls(TimePoint now) {
  while (!calls_.empty() && calls_.front().end <= now) {
    processes_[calls_.front().process].slice = calls_.front().slice;
    calls_.pop_front();
  }
}

bool CommandDevice::Stopped(TimePoint now) const {
  return !calls_.empty() && calls_.front().stops && calls_.front().begin <= now;
}

// The process that has the device now; -1: none wants it.
int CommandDevice::ChooseProcess(TimePoint now) {
  if (processes_.size() > 1) return ChooseOfSeveral(now);
  // If none of its queues may run, Run finds that out.
  return doing_ == Doing::kRuns || processes_[0].slice != kNoSlice ? 0 : -1;
}

int CommandDevice::ChooseOfSeveral(TimePoint now) {
  const auto count = static_cast<int>(processes_.size());
  const bool stays = on_ >= 0 && Wants(processes_[static_cast<size_t>(on_)]);
  const bool was_contested = contested_;
  int other = -1;
  int candidate = std::max(on_, 0);
  for (int tried = 1; tried <= count && other < 0; ++tried) {
    if (++candidate == count) candidate = 0;
    if (candidate != on_ && Wants(processes_[static_cast<size_t>(candidate)])) other = candidate;
  }
  contested_ = stays && other >= 0;
  if (!stays) return other;
  if (!Sliced()) return on_;
  const Duration slice = SliceOf(processes_[static_cast<size_t>(on_)]);
  // Slices also follow each other while nobody else wants the device.
  if (!was_contested && now - slice_begun_ >= slice) slice_begun_ = now - (now - slice_begun_) % slice;
  return other >= 0 && now - slice_begun_ >= slice ? other : on_;
}

// ---- commands ----

// How many commands the queue, which has so many left, runs in one step while others take turns with it.
uint64_t CommandDevice::Together(const Process& process, uint64_t left) const {
  if (left < 2 * kStepsOfATask) return 1;
  uint64_t shortest = left;
  Duration longest{1};
  for (size_t index : process.busy) {
    const CommandQueue& queue = queues_[index];
    if (!queue.MayRun()) continue;
    shortest = std::min(shortest, queue.head_end - queue.retired);
    longest = std::max(longest, LengthOf(queue));
  }
  return std::max<uint64_t>(
      1, std::min(shortest / kStepsOfATask, static_cast<uint64_t>(kLongestStep / longest)));
}

// What has started ends first. Of those that have never run, the one behind the last one is next.
bool CommandDevice::IsBefore(size_t index, size_t other_index, size_t last) const {
  const CommandQueue& queue = queues_[index];
  const CommandQueue& other = queues_[other_index];
  const bool started = queue.left > Duration::zero();
  if (started != (other.left > Duration::zero())) return started;
  if (order_ == Order::kByArrival) {
    if (queue.arrived != other.arrived) return queue.arrived < other.arrived;
  } else if (queue.turn != other.turn) {
    return queue.turn < other.turn;
  }
  return index > last && other_index <= last;
}

// The next queue of the process that may run.
CommandDevice::Choice CommandDevice::ChooseQueue(const Process& process) const {
  Choice choice;
  for (size_t index : process.busy) {
    if (!queues_[index].MayRun()) continue;
    choice.others = choice.queue.has_value();
    if (!choice.others || IsBefore(index, *choice.queue, *process.last)) choice.queue = index;
  }
  return choice;
}

void CommandDevice::Run(Process& process, TimePoint now) {
  if (doing_ == Doing::kRuns) {
    CommandQueue& queue = queues_[running_];
    const bool others =
        AnyBusy(process, [&](const CommandQueue& other) { return &other != &queue && other.MayRun(); });
    const bool in_turn = order_ == Order::kInTurn && others;
    if (in_turn && !in_turn_) until_ = queue.retired + 1;
    in_turn_ = in_turn;
    if (!queue.open) until_ = std::min(until_, std::max(queue.stop_at, queue.retired + 1));
    until_ = std::max(std::min(until_, queue.head_end), queue.retired + 1);
    return;
  }
  const Choice choice = ChooseQueue(process);
  if (!choice.queue) {
    doing_ = Doing::kWaitsAtGate;
    return;
  }
  process.last = running_ = *choice.queue;
  CommandQueue& queue = queues_[running_];
  queue.turn = ++turns_;
  length_ = LengthOf(queue);
  in_turn_ = order_ == Order::kInTurn && choice.others;
  const bool endless = queue.head_end - queue.retired > kWithoutEnd / 2;
  uint64_t count = queue.head_end - queue.retired;
  if (endless) count = static_cast<uint64_t>(std::max<int64_t>(1, std::chrono::seconds(1) / length_));
  if (in_turn_) count = std::min(count, Together(process, count));
  if (order_ == Order::kByArrival && endless) {
    // It has launched so much, and goes to the end of the line with what it launches next.
    count = static_cast<uint64_t>(parameters_.in_flight);
    queue.arrived = now;
  }
  if (!queue.open) count = std::min(count, queue.stop_at - queue.retired);
  until_ = queue.retired + count;
  if (queue.left == Duration::zero()) queue.left = length_;
  doing_ = Doing::kRuns;
}

void CommandDevice::Dispatch(TimePoint now) {
  at_ = now;  // the first time, nothing has been settled
  Choose(now);
  next_ = Next();
  changed_ = false;
}

void CommandDevice::Choose(TimePoint now) {
  EndCalls(now);
  if (Stopped(now)) {
    doing_ = Doing::kNothing;
    return;
  }
  if (doing_ == Doing::kChanges) {
    if (now < change_end_) return;
    doing_ = Doing::kNothing;
    slice_begun_ = now;
  }
  const int process = ChooseProcess(now);
  if (process < 0) {
    doing_ = Doing::kNothing;
    return;
  }
  Process& chosen = processes_[static_cast<size_t>(process)];
  if (process != on_) {
    const bool first = on_ < 0;
    const bool was_at_work = !first && Wants(processes_[static_cast<size_t>(on_)]);
    const Duration time = first         ? Duration::zero()
                          : was_at_work ? parameters_.switch_running
                                        : parameters_.switch_idle;
    on_ = process;
    doing_ = Doing::kChanges;
    change_end_ = now + time;
    if (time > Duration::zero()) return;
    slice_begun_ = now;
    doing_ = Doing::kNothing;
    ChooseProcess(now);  // is it contested?
  }
  if (doing_ == Doing::kWaitsAtGate) doing_ = Doing::kNothing;
  Run(chosen, now);
}

}  // namespace xsched::sched::sim
