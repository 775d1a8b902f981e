#include "sched/sim/simulation.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "sched/sim/counted_hints.h"
#include "sched/sim/timers.h"

namespace xsched::sched::sim {
namespace {

constexpr TimePoint kStart{std::chrono::milliseconds(1)};

class Simulation final : public ControlSink {
 public:
  Simulation(const Load& load, const Conditions& conditions);
  Result Run();

  void SetControl(QueueId id, const Control& control) override;
  void Query(QueueId id) override { ReportLater(IndexOf(id)); }
  void SetSlice(ProcessId process, DeviceId device, Duration slice) override {
    devices_[static_cast<size_t>(device) - 1].SetSlice(static_cast<int>(process) - 1, slice, now_);
  }

 private:
  struct Pending {
    const Task* task;
    TimePoint arrived;
    uint64_t last;        // number of its last command
    uint64_t wait_until;  // of the queue that it waits for: this command; 0: none
    bool endless;         // its end has not come yet
  };
  // A program's thread that gives work to one queue.
  struct Program {
    size_t next = 0;              // its next task
    const Task* last = nullptr;   // that has come
    TimePoint arrives = kNever;   // when that comes
    TimePoint ends = kNever;      // when a task without an end ends, the first of those that are pending
    std::deque<Pending> pending;  // tasks that have not ended
    uint64_t submitted = 0;
    uint64_t skipped = 0;  // commands of the warm-up
    Duration skipped_time{};
    bool report = false;          // the scheduler does not know its state yet
    bool held = false;            // by the scheduler
    TimePoint control_at{};       // when that takes effect, or has
    size_t next_change = 0;       // of hints
    TimePoint hints_at = kNever;  // when that comes
    uint32_t drains = 0;          // how often its queue was held and the device then had nothing more of it
    bool waits = false;           // the scheduler knows a dependency
  };

  static QueueId IdOf(size_t queue) { return QueueId{queue + 1}; }
  static size_t IndexOf(QueueId id) { return static_cast<size_t>(id) - 1; }
  CommandDevice& DeviceOf(size_t queue) { return devices_[static_cast<size_t>(load_.queues[queue].device)]; }
  const DeviceParameters& DeviceParametersOf(size_t queue) const {
    return load_.devices[static_cast<size_t>(load_.queues[queue].device)];
  }
  const Hints& HintsOf(size_t queue) const {
    return conditions_.hints.empty() ? load_.queues[queue].hints : conditions_.hints[queue];
  }

  void AddQueues();
  void IntroduceProcesses();
  void Settle();
  static bool IsOverOrHeld(const CommandQueue& queue);
  void RefreshDue(size_t queue);
  void ReportLater(size_t queue);
  void HandleDue();
  void Arrive(size_t queue);
  void ExpectHints(size_t queue);
  void ChangeHints(size_t queue);
  TimePoint EndOf(const Task& endless) const { return kStart + std::min(endless.until, load_.length); }
  void EndEndless(size_t queue);
  void EndTasks(size_t queue);
  void RemoveEnded(size_t queue);
  void Expect(size_t queue);
  void CountUnended(size_t queue);
  Duration LatencyOf(size_t queue, const Pending& task) const {
    return now_ - task.arrived + DeviceParametersOf(queue).command_latency;
  }
  void SetHead(size_t queue);
  void Act(size_t queue);
  void Decide();
  bool IsAnythingDue() const;
  TimePoint NextEvent() const;
  void EndWarmUp();

  const Load& load_;
  const Conditions& conditions_;
  std::optional<Scheduler> scheduler_;
  CountedHints hints_;
  std::vector<CommandQueue> queues_;
  std::vector<Program> programs_;
  std::vector<CommandDevice> devices_;
  Timers due_;                   // when each program next does something by itself
  std::vector<size_t> acting_;   // queues whose control takes effect soon; mostly none
  std::vector<size_t> retired_;  // queues that have retired the last command of a task, or one while held
  std::vector<size_t> reports_;  // queues of which Program::report is true
  size_t waiting_ = 0;           // queues that wait for another one
  Result result_;
  TimePoint now_ = kStart;
  TimePoint decide_at_ = kNever;
  TimePoint counts_from_;
  bool counts_ = false;
  bool changed_ = true;  // the scheduler has new information since its last decision
};

Simulation::Simulation(const Load& load, const Conditions& conditions)
    : load_(load),
      conditions_(conditions),
      hints_(load),
      queues_(load.queues.size()),
      programs_(load.queues.size()),
      due_(load.queues.size()) {
  counts_from_ = kStart + conditions.warm_up;
  result_.queues.resize(queues_.size());
  result_.length = load.length - conditions.warm_up;
  const Order order = conditions.policy ? Order::kInTurn : conditions.order;
  for (const DeviceParameters& device : load.devices)
    devices_.emplace_back(device, order, queues_, load.processes.size());
  if (conditions.policy) {
    scheduler_.emplace(conditions.config);
    scheduler_->SetPolicy(*conditions.policy);
  }
  AddQueues();
}

void Simulation::AddQueues() {
  if (scheduler_) IntroduceProcesses();
  for (size_t i = 0; i < queues_.size(); ++i) hints_.Begin(i, HintsOf(i));
  for (size_t i = 0; i < queues_.size(); ++i) {
    const QueueLoad& queue = load_.queues[i];
    queues_[i].process = queue.process;
    queues_[i].level = queue.level;
    DeviceOf(i).Add(i);
    if (!queue.tasks.empty()) programs_[i].arrives = kStart + queue.tasks[0].at;
    ExpectHints(i);
    RefreshDue(i);
    if (!scheduler_) continue;
    scheduler_->AddQueue(IdOf(i), ProcessId{static_cast<uint64_t>(queue.process) + 1},
                         DeviceId{static_cast<uint64_t>(queue.device) + 1}, hints_.Of(i), now_,
                         {.sliceable = queue.level == 3, .reports_overruns = queue.level == 1});
  }
}

void Simulation::IntroduceProcesses() {
  for (const auto& [tenant, share] : load_.tenants) scheduler_->SetTenantShare(TenantId{tenant}, share);
  for (size_t i = 0; i < load_.processes.size(); ++i) {
    const ProcessLoad& process = load_.processes[i];
    if (process.job != 0) scheduler_->SetJob(ProcessId{i + 1}, JobId{process.job});
    scheduler_->SetTenant(ProcessId{i + 1}, TenantId{process.tenant});
  }
}

Result Simulation::Run() {
  const TimePoint end = kStart + load_.length;
  Settle();
  while (now_ < end) {
    HandleDue();
    Decide();
    for (CommandDevice& device : devices_) {
      if (device.IsDue(now_)) device.Dispatch(now_);
    }
    ++result_.events;
    now_ = std::min(end, std::max(NextEvent(), now_));
    Settle();
  }
  for (size_t i = 0; i < queues_.size(); ++i) {
    EndTasks(i);
    CountUnended(i);
    result_.queues[i].commands = queues_[i].retired - programs_[i].skipped;
    result_.queues[i].device_time = queues_[i].device_time - programs_[i].skipped_time;
  }
  return std::move(result_);
}

void Simulation::Settle() {
  for (CommandDevice& device : devices_) {
    const std::optional<size_t> queue = device.Settle(now_);
    if (queue && IsOverOrHeld(queues_[*queue])) retired_.push_back(*queue);
  }
}

// Otherwise nobody has to know that some of its commands have retired.
bool Simulation::IsOverOrHeld(const CommandQueue& queue) { return !queue.HasWork() || !queue.open; }

TimePoint Simulation::NextEvent() const {
  TimePoint next = std::min(decide_at_, counts_ ? kNever : counts_from_);
  if (changed_ && scheduler_) return now_;
  for (const CommandDevice& device : devices_) next = std::min(next, device.next());
  for (size_t queue : acting_) next = std::min(next, programs_[queue].control_at);
  return std::min(next, due_.next());
}

void Simulation::RefreshDue(size_t index) {
  const Program& program = programs_[index];
  due_.Set(index, std::min({program.arrives, program.ends, program.hints_at}));
}

void Simulation::HandleDue() {
  if (!counts_ && now_ >= counts_from_) EndWarmUp();
  for (size_t queue : retired_) EndTasks(queue);
  retired_.clear();
  while (due_.next() <= now_) {
    const size_t i = due_.first();
    if (now_ >= programs_[i].ends) EndEndless(i);
    while (now_ >= programs_[i].arrives) Arrive(i);
    while (now_ >= programs_[i].hints_at) ChangeHints(i);
    RefreshDue(i);
  }
  for (size_t i = acting_.size(); i-- > 0;) {
    const size_t queue = acting_[i];
    if (now_ < programs_[queue].control_at) continue;
    acting_.erase(acting_.begin() + static_cast<std::ptrdiff_t>(i));
    Act(queue);
  }
  for (size_t i = 0; waiting_ != 0 && i < queues_.size(); ++i) {
    if (queues_[i].waits) SetHead(i);
  }
}

void Simulation::EndWarmUp() {
  counts_ = true;
  for (size_t i = 0; i < queues_.size(); ++i) {
    programs_[i].skipped = queues_[i].retired;
    programs_[i].skipped_time = queues_[i].device_time;
  }
}

// ---- programs ----

void Simulation::ExpectHints(size_t index) {
  Program& program = programs_[index];
  const auto& changes = load_.queues[index].changes;
  program.hints_at = program.next_change < changes.size() ? kStart + changes[program.next_change].at : kNever;
}

void Simulation::ChangeHints(size_t index) {
  const HintChange& change = load_.queues[index].changes[programs_[index].next_change++];
  ExpectHints(index);
  if (!scheduler_ || !conditions_.hints.empty()) return;
  hints_.Change(index, change.hints);
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (hints_.AreTogether(index, i)) scheduler_->SetHints(IdOf(i), hints_.Of(i));
  }
  changed_ = true;
}

void Simulation::Arrive(size_t index) {
  Program& program = programs_[index];
  const Task& task = load_.queues[index].tasks[program.next];
  program.arrives = kNever;
  program.submitted += task.commands;
  Pending pending{&task, now_, program.submitted, 0, task.commands == kWithoutEnd};
  if (task.waits_for >= 0) {
    const auto target = static_cast<size_t>(task.waits_for);
    // One that always has work never has done all of it.
    if (programs_[target].ends == kNever) pending.wait_until = programs_[target].submitted;
  }
  program.pending.push_back(pending);
  ReportLater(index);
  if (pending.endless) program.ends = std::min(program.ends, EndOf(task));
  if (program.pending.size() == 1) SetHead(index);
  program.last = &task;
  if (task.repeat != kNoRepeat) return;  // the same comes again
  ++program.next;
  Expect(index);
}

// The next task is known: when does it come?
void Simulation::Expect(size_t index) {
  Program& program = programs_[index];
  const auto& tasks = load_.queues[index].tasks;
  if (program.next >= tasks.size()) return;
  const Task& task = tasks[program.next];
  if (!task.follows) {
    program.arrives = std::max(now_, kStart + task.at);
  } else if (program.pending.empty()) {
    program.arrives = now_ + task.at;
  }
}

// What came after it is numbered anew.
void Simulation::EndEndless(size_t index) {
  Program& program = programs_[index];
  CommandQueue& queue = queues_[index];
  program.ends = kNever;
  uint64_t last = queue.retired;
  for (Pending& task : program.pending) {
    const bool is_head = &task == &program.pending.front();
    if (task.endless && now_ >= EndOf(*task.task)) {
      task.endless = false;
      task.last = is_head ? last + static_cast<uint64_t>(queue.left > Duration::zero()) : last;
    } else if (!is_head) {
      task.last = last + (task.task->commands == kWithoutEnd && !task.endless ? 0 : task.task->commands);
    }
    if (task.endless) program.ends = std::min(program.ends, EndOf(*task.task));
    last = task.last;
  }
  program.submitted = last;
  DeviceOf(index).SetEnd(index, program.pending.front().last);
  ReportLater(index);
  RemoveEnded(index);
}

void Simulation::EndTasks(size_t index) {
  Program& program = programs_[index];
  CommandQueue& queue = queues_[index];
  if (scheduler_ && !queue.open && queue.charges_overruns && queue.retired >= queue.stop_at) {
    scheduler_->Progress(IdOf(index), program.submitted, queue.retired, now_);
    scheduler_->Drained(IdOf(index), ++program.drains, now_);
    changed_ = true;
  }
  RemoveEnded(index);
}

void Simulation::RemoveEnded(size_t index) {
  Program& program = programs_[index];
  const CommandQueue& queue = queues_[index];
  bool ended = false;
  for (; !program.pending.empty() && program.pending.front().last <= queue.retired; ended = true) {
    const Pending task = program.pending.front();
    program.pending.pop_front();
    if (counts_ && task.task->commands != kWithoutEnd)
      result_.queues[index].AddEnded(LatencyOf(index, task), HintsOf(index).deadline_us);
  }
  if (!ended) return;
  ReportLater(index);
  SetHead(index);
  if (!program.pending.empty() || program.arrives != kNever) return;
  const Task& last = *program.last;
  const TimePoint again = now_ + DeviceParametersOf(index).command_latency + last.repeat;
  if (last.repeat != kNoRepeat && again < kStart + last.until) {
    program.arrives = again;
  } else {
    if (last.repeat != kNoRepeat) ++program.next;
    Expect(index);
  }
  RefreshDue(index);
}

// Otherwise a queue that starves would look as good as the few tasks that it has ended.
void Simulation::CountUnended(size_t index) {
  for (const Pending& task : programs_[index].pending) {
    if (task.task->commands != kWithoutEnd)
      result_.queues[index].AddUnended(LatencyOf(index, task), HintsOf(index).deadline_us);
  }
}

// What the device sees of the queue's oldest task.
void Simulation::SetHead(size_t index) {
  Program& program = programs_[index];
  CommandQueue& queue = queues_[index];
  waiting_ -= static_cast<size_t>(queue.waits);
  queue.waits = false;
  if (program.pending.empty()) {
    DeviceOf(index).SetEnd(index, queue.retired);
    return;
  }
  const Pending& head = program.pending.front();
  DeviceOf(index).SetEnd(index, head.last);
  queue.command = head.task->command;
  queue.launch = head.task->launch;
  queue.arrived = head.arrived;
  const bool for_ever = head.task->waits_for == kForEver;
  const auto target = static_cast<size_t>(std::max(head.task->waits_for, 0));
  queue.waits = for_ever || head.wait_until > queues_[target].retired;
  waiting_ += static_cast<size_t>(queue.waits);
  if (!scheduler_ || for_ever || queue.waits == program.waits) return;
  program.waits = queue.waits;
  const Dependency dependency{IdOf(target), head.wait_until};
  scheduler_->SetDependencies(IdOf(index), std::span(&dependency, queue.waits ? 1 : 0));
  changed_ = true;
}

// ---- the scheduler ----

// The scheduler has to be told how far the queue has come.
void Simulation::ReportLater(size_t index) {
  changed_ = true;
  if (!std::exchange(programs_[index].report, true)) reports_.push_back(index);
}

void Simulation::Decide() {
  if (!scheduler_ || (!changed_ && now_ < decide_at_)) return;
  do {
    changed_ = false;
    if (reports_.size() > 1) std::sort(reports_.begin(), reports_.end());
    for (size_t queue : reports_) {
      programs_[queue].report = false;
      scheduler_->Progress(IdOf(queue), programs_[queue].submitted, queues_[queue].retired, now_);
    }
    reports_.clear();
    decide_at_ = scheduler_->Decide(now_, *this);
    // What it has asked is answered at once, unless a device or a program acts before that.
  } while (changed_ && !IsAnythingDue());
}

bool Simulation::IsAnythingDue() const {
  for (const CommandDevice& device : devices_) {
    if (device.IsDue(now_)) return true;
  }
  for (size_t queue : acting_) {
    if (now_ >= programs_[queue].control_at) return true;
  }
  return now_ >= due_.next();
}

void Simulation::SetControl(QueueId id, const Control& control) {
  const size_t index = IndexOf(id);
  Program& program = programs_[index];
  CommandQueue& queue = queues_[index];
  queue.gated = control.gated;
  queue.sliced = control.sliced;
  queue.charges_overruns = control.charges_overruns;
  if (program.held == !control.run) return;
  program.held = !control.run;
  const DeviceParameters& device = DeviceParametersOf(index);
  program.control_at = now_ + (control.run ? device.resume_latency : device.hold_latency);
  std::erase(acting_, index);
  if (program.control_at <= now_) {
    Act(index);
  } else {
    acting_.push_back(index);
  }
}

// What the scheduler decided last reaches the queue.
void Simulation::Act(size_t index) {
  if (!programs_[index].held) {
    DeviceOf(index).Open(index);
  } else if (queues_[index].open) {
    DeviceOf(index).Hold(index);
  }
}

}  // namespace

Result Simulate(const Load& load, const Conditions& conditions) { return Simulation(load, conditions).Run(); }

}  // namespace xsched::sched::sim
