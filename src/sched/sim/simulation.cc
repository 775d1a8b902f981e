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
  void Query(QueueId id) override;
  void SetSlice(ProcessId process, DeviceId device, Duration slice) override {
    devices_[static_cast<size_t>(device) - 1].SetSlice(static_cast<int>(process) - 1, slice, now_);
  }

 private:
  struct Pending {
    const Task* task;
    TimePoint arrived;
    uint64_t last;        // number of its last command
    uint64_t wait_until;  // of the queue that it waits for: this command; 0: none
    Deadline deadline;    // that the queue had when it came
    bool endless;         // its end has not come yet
  };
  // When a task comes again: the program has waited for its end, and pauses.
  struct Repeat {
    TimePoint at;
    const Task* task;
  };
  enum class Stage : uint8_t {
    kToCome,
    kThere,
    kLeaves,  // it goes when it has done its work
    kGone,
  };
  // What a program does with one queue.
  struct Program {
    Stage stage = Stage::kToCome;
    size_t next = 0;             // its next task
    TimePoint arrives = kNever;  // when that comes
    std::vector<Repeat> repeats;
    TimePoint repeats_at = kNever;  // the first of these
    TimePoint ends = kNever;        // when a task without an end ends, the first of those that are pending
    std::deque<Pending> pending;    // tasks that have not ended
    uint64_t submitted = 0;
    uint64_t skipped = 0;  // commands of the warm-up
    Duration skipped_time{};
    bool report = false;     // the scheduler does not know its state yet
    bool held = false;       // by the scheduler
    TimePoint control_at{};  // when that takes effect, or has
    Deadline deadline = NO_DEADLINE;
    size_t next_change = 0;         // of hints
    TimePoint changes_at = kNever;  // when its queue comes, has that change, or goes
    uint32_t drains = 0;            // how often its queue was held and the device then had nothing more of it
    bool waits = false;             // the scheduler knows a dependency
  };

  static QueueId IdOf(size_t queue) { return QueueId{queue + 1}; }
  static size_t IndexOf(QueueId id) { return static_cast<size_t>(id) - 1; }
  CommandDevice& DeviceOf(size_t queue) { return devices_[static_cast<size_t>(load_.queues[queue].device)]; }
  const DeviceParameters& DeviceParametersOf(size_t queue) const {
    return load_.devices[static_cast<size_t>(load_.queues[queue].device)];
  }
  // What counts in place of the load's hints.
  Hints Overridden(size_t queue, const Hints& hints) const {
    return conditions_.hints.empty() ? hints : conditions_.hints[queue].Over(hints);
  }

  void AddQueues();
  void IntroduceProcesses();
  void BeginHints(size_t queue);
  void AddToScheduler(size_t queue);
  void RunUntil(TimePoint end);
  void Settle();
  void Retired(size_t queue);
  void ReportSoonIfDrained(size_t queue);
  static bool HasDrained(const CommandQueue& queue);
  void RefreshDue(size_t queue);
  void ReportLater(size_t queue);
  void HandleDue();
  void ExpectChange(size_t queue);
  void Change(size_t queue);
  void Come(size_t queue);
  void ChangeHints(size_t queue);
  void UpdateHints(size_t queue);
  void LeaveIfDone(size_t queue);
  void ArriveNext(size_t queue);
  void ArriveAgain(size_t queue);
  void Arrive(size_t queue, const Task& task);
  TimePoint EndOf(const Task& endless) const { return kStart + std::min(endless.until, load_.length); }
  void EndEndless(size_t queue);
  void EndTasks(size_t queue);
  void RemoveEnded(size_t queue);
  void ExpectAgain(size_t queue, const Task& task);
  void Expect(size_t queue);
  void CountUnended(size_t queue);
  Duration LatencyOf(size_t queue, const Pending& task) const {
    return now_ - task.arrived + DeviceParametersOf(queue).command_latency;
  }
  void SetHead(size_t queue);
  void Act(size_t queue);
  void ActDue();
  void RefreshActs();
  void Decide();
  // A program does something by itself, or a control takes effect.
  bool IsProgramDue() const { return now_ >= std::min(acts_at_, due_.next()); }
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
  std::vector<size_t> left_;     // of each process: its queues that are not gone, or are yet to come
  Timers due_;                   // when each program next does something by itself
  std::vector<size_t> acting_;   // queues whose control takes effect soon; mostly none
  TimePoint acts_at_ = kNever;   // when the first of these does
  std::vector<size_t> retired_;  // queues that have retired the last command of a task, or have drained
  std::vector<size_t> reports_;  // queues of which Program::report is true
  size_t waiting_ = 0;           // queues that wait for another one
  Result result_;
  TimePoint now_ = kStart;
  TimePoint decide_at_ = kNever;
  bool counts_ = false;  // the warm-up is over
  bool changed_ = true;  // the scheduler has new information since its last decision
};

Simulation::Simulation(const Load& load, const Conditions& conditions)
    : load_(load),
      conditions_(conditions),
      hints_(load),
      queues_(load.queues.size()),
      programs_(load.queues.size()),
      left_(load.processes.size()),
      due_(load.queues.size()) {
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
  const auto is_there = [this](size_t queue) { return load_.queues[queue].from <= Duration::zero(); };
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (is_there(i)) BeginHints(i);
  }
  for (size_t i = 0; i < queues_.size(); ++i) {
    const QueueLoad& queue = load_.queues[i];
    queues_[i].process = queue.process;
    queues_[i].level = queue.level;
    ++left_[static_cast<size_t>(queue.process)];
    DeviceOf(i).Add(i);
    if (!queue.tasks.empty()) programs_[i].arrives = kStart + queue.tasks[0].at;
    if (is_there(i)) AddToScheduler(i);
    ExpectChange(i);
    RefreshDue(i);
  }
}

void Simulation::BeginHints(size_t index) {
  const Hints hints = Overridden(index, load_.queues[index].hints);
  hints_.Begin(index, hints);
  programs_[index].deadline = hints.deadline_us;
}

void Simulation::AddToScheduler(size_t index) {
  const QueueLoad& queue = load_.queues[index];
  programs_[index].stage = Stage::kThere;
  if (!scheduler_) return;
  scheduler_->AddQueue(IdOf(index), ProcessId{static_cast<uint64_t>(queue.process) + 1},
                       DeviceId{static_cast<uint64_t>(queue.device) + 1}, hints_.Of(index), now_,
                       {.sliceable = queue.level == 3,
                        .runs_beside_others = DeviceParametersOf(index).slice != Duration::zero(),
                        .reports_overruns = true});
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
  RunUntil(std::min(kStart + conditions_.warm_up, end));
  EndWarmUp();
  RunUntil(end);
  for (size_t i = 0; i < queues_.size(); ++i) {
    EndTasks(i);
    CountUnended(i);
    result_.queues[i].commands = queues_[i].retired - programs_[i].skipped;
    result_.queues[i].device_time = queues_[i].device_time - programs_[i].skipped_time;
  }
  return std::move(result_);
}

void Simulation::RunUntil(TimePoint end) {
  while (now_ < end) {
    if (!retired_.empty() || waiting_ != 0 || IsProgramDue()) HandleDue();
    Decide();
    for (CommandDevice& device : devices_) {
      if (device.IsDue(now_)) device.Dispatch(now_);
    }
    ++result_.events;
    now_ = std::min(end, std::max(NextEvent(), now_));
    Settle();
  }
}

void Simulation::Settle() {
  for (CommandDevice& device : devices_) {
    const std::optional<size_t> queue = device.Settle(now_);
    if (queue) Retired(*queue);
  }
}

// Unless the queue has done all or has drained, nobody has to know that some of its commands have retired.
void Simulation::Retired(size_t index) {
  const CommandQueue& queue = queues_[index];
  if (!queue.HasWork() || HasDrained(queue)) retired_.push_back(index);
}

// The device has nothing more of the held queue, which is charged for what it does while it is held.
bool Simulation::HasDrained(const CommandQueue& queue) {
  return !queue.open && queue.charges_overruns && queue.retired >= queue.stop_at;
}

TimePoint Simulation::NextEvent() const {
  if ((changed_ && scheduler_) || !retired_.empty()) return now_;
  TimePoint next = decide_at_;
  for (const CommandDevice& device : devices_) next = std::min(next, device.next());
  return std::min({next, acts_at_, due_.next()});
}

void Simulation::RefreshDue(size_t index) {
  const Program& program = programs_[index];
  due_.Set(index, std::min({program.arrives, program.repeats_at, program.ends, program.changes_at}));
}

void Simulation::HandleDue() {
  for (size_t queue : retired_) EndTasks(queue);
  retired_.clear();
  while (due_.next() <= now_) {
    const size_t i = due_.first();
    while (now_ >= programs_[i].changes_at) Change(i);
    if (now_ >= programs_[i].ends) EndEndless(i);
    while (now_ >= programs_[i].arrives) ArriveNext(i);
    if (now_ >= programs_[i].repeats_at) ArriveAgain(i);
    RefreshDue(i);
  }
  if (now_ >= acts_at_) ActDue();
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

void Simulation::ExpectChange(size_t index) {
  Program& program = programs_[index];
  const QueueLoad& load = load_.queues[index];
  program.changes_at = kNever;
  if (program.stage == Stage::kToCome) {
    program.changes_at = kStart + load.from;
  } else if (program.stage != Stage::kThere) {
    return;
  } else if (program.next_change < load.changes.size()) {
    program.changes_at = kStart + load.changes[program.next_change].at;
  } else if (load.gone) {
    program.changes_at = kStart + *load.gone;
  }
}

void Simulation::Change(size_t index) {
  Program& program = programs_[index];
  if (program.stage == Stage::kToCome) {
    Come(index);
  } else if (program.next_change < load_.queues[index].changes.size()) {
    ChangeHints(index);
  } else {
    program.stage = Stage::kLeaves;
    LeaveIfDone(index);
  }
  ExpectChange(index);
}

void Simulation::Come(size_t index) {
  BeginHints(index);
  AddToScheduler(index);
  UpdateHints(index);
  ReportLater(index);
}

void Simulation::ChangeHints(size_t index) {
  Program& program = programs_[index];
  const Hints hints = Overridden(index, load_.queues[index].changes[program.next_change++].hints);
  program.deadline = hints.deadline_us;
  hints_.Change(index, hints);
  UpdateHints(index);
}

// The queue has other hints than before, or is gone: what it and others count by now.
void Simulation::UpdateHints(size_t index) {
  if (!scheduler_) return;
  changed_ = true;
  if (!hints_.IsLimited(index)) return scheduler_->SetHints(IdOf(index), hints_.Of(index));
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (hints_.AreTogether(index, i)) scheduler_->SetHints(IdOf(i), hints_.Of(i));
  }
}

// A process leaves with its last queue.
void Simulation::LeaveIfDone(size_t index) {
  Program& program = programs_[index];
  if (!program.pending.empty() || program.arrives != kNever || program.repeats_at != kNever) return;
  program.stage = Stage::kGone;
  hints_.End(index);
  const auto process = static_cast<size_t>(load_.queues[index].process);
  const bool is_last = --left_[process] == 0;
  if (!scheduler_) return;
  scheduler_->Progress(IdOf(index), program.submitted, queues_[index].retired, now_);
  scheduler_->RemoveQueue(IdOf(index), now_);
  std::erase(acting_, index);
  RefreshActs();
  if (is_last) scheduler_->RemoveProcess(ProcessId{process + 1});
  UpdateHints(index);
}

void Simulation::ArriveNext(size_t index) {
  Program& program = programs_[index];
  program.arrives = kNever;
  Arrive(index, load_.queues[index].tasks[program.next++]);
  Expect(index);
}

void Simulation::ArriveAgain(size_t index) {
  Program& program = programs_[index];
  program.repeats_at = kNever;
  std::erase_if(program.repeats, [&](const Repeat& repeat) {
    if (now_ >= repeat.at) {
      Arrive(index, *repeat.task);
      return true;
    }
    program.repeats_at = std::min(program.repeats_at, repeat.at);
    return false;
  });
}

void Simulation::Arrive(size_t index, const Task& task) {
  Program& program = programs_[index];
  program.submitted += task.commands;
  Pending pending{&task, now_, program.submitted, 0, program.deadline, task.commands == kWithoutEnd};
  if (task.waits_for >= 0) {
    const auto target = static_cast<size_t>(task.waits_for);
    // One that always has work never has done all of it.
    if (programs_[target].ends == kNever) pending.wait_until = programs_[target].submitted;
  }
  program.pending.push_back(pending);
  ReportLater(index);
  if (pending.endless) program.ends = std::min(program.ends, EndOf(task));
  if (program.pending.size() == 1) SetHead(index);
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
  if (scheduler_ && HasDrained(queue)) {
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
      result_.queues[index].AddEnded(LatencyOf(index, task), task.deadline);
    if (task.task->repeat != kNoRepeat) ExpectAgain(index, *task.task);
  }
  if (!ended) return;
  ReportLater(index);
  SetHead(index);
  if (!program.pending.empty() || program.arrives != kNever) return;
  Expect(index);
  RefreshDue(index);
  if (program.stage == Stage::kLeaves) LeaveIfDone(index);
}

void Simulation::ExpectAgain(size_t index, const Task& task) {
  Program& program = programs_[index];
  const TimePoint at = now_ + DeviceParametersOf(index).command_latency + task.repeat;
  if (at >= kStart + task.until) return;
  program.repeats.push_back({at, &task});
  program.repeats_at = std::min(program.repeats_at, at);
  RefreshDue(index);
}

// Otherwise a queue that starves would look as good as the few tasks that it has ended.
void Simulation::CountUnended(size_t index) {
  for (const Pending& task : programs_[index].pending) {
    if (task.task->commands != kWithoutEnd)
      result_.queues[index].AddUnended(LatencyOf(index, task), task.deadline);
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
  return IsProgramDue();
}

void Simulation::ActDue() {
  std::erase_if(acting_, [this](size_t queue) {
    if (now_ < programs_[queue].control_at) return false;
    Act(queue);
    return true;
  });
  RefreshActs();
}

void Simulation::RefreshActs() {
  acts_at_ = kNever;
  for (size_t queue : acting_) acts_at_ = std::min(acts_at_, programs_[queue].control_at);
}

void Simulation::SetControl(QueueId id, const Control& control) {
  const size_t index = IndexOf(id);
  Program& program = programs_[index];
  CommandQueue& queue = queues_[index];
  queue.gated = control.gated;
  queue.sliced = control.sliced;
  queue.charges_overruns = control.charges_overruns;
  queue.keeps_busy = control.keeps_busy;
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
  RefreshActs();
}

// Not at once: the scheduler may be deciding.
void Simulation::ReportSoonIfDrained(size_t index) {
  if (HasDrained(queues_[index])) retired_.push_back(index);
}

void Simulation::Query(QueueId id) {
  const size_t index = IndexOf(id);
  ReportLater(index);
  // It may have been let run and held again before that took effect.
  ReportSoonIfDrained(index);
}

// What the scheduler decided last reaches the queue.
void Simulation::Act(size_t index) {
  if (!programs_[index].held) {
    DeviceOf(index).Open(index);
  } else if (queues_[index].open) {
    DeviceOf(index).Hold(index);
    ReportSoonIfDrained(index);  // it may be at a gate at this moment
  }
}

}  // namespace

Result Simulate(const Load& load, const Conditions& conditions) { return Simulation(load, conditions).Run(); }

}  // namespace xsched::sched::sim
