#include "sched/sim/world.h"

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "sched/core/policy.h"
#include "sched/core/scheduler.h"
#include "sched/sim/client_model.h"
#include "sched/sim/promises.h"
#include "sched/sim/report_model.h"

namespace xsched::sched::sim {
namespace {

constexpr TimePoint kHistoryStart{milliseconds(1)};
constexpr Duration kLaunchTime = microseconds(20);
constexpr Duration kGivenBackWithin = milliseconds(1200);
constexpr uint64_t kMostEvents = 1'000'000;

// An effect of an event that happens later.
struct Later {
  enum class Kind : uint8_t { kScript, kContinue, kNoticeStop, kResume, kReportSuspension, kRemove };
  TimePoint at{};
  Kind kind = Kind::kScript;
  int subject = 0;
};

class World final : public ControlSink {
 public:
  World(const History& history, std::ostream* trace);
  Outcome Run();

  void SetControl(QueueId id, const Control& control) override;
  void Query(QueueId id) override;
  void SetSlice(ProcessId process, DeviceId device, Duration slice) override;

 private:
  // What the server knows of a queue.
  struct Contact {
    bool known = false;
    bool tracked = false;
    bool asked = false;          // its progress was queried since the last report
    bool tells_drained = false;  // it is held, and its client reports when the device has nothing more of it
    uint32_t drains = 0;
    uint32_t found_idle = 0;
    TimePoint made_at{};
    TimePoint report_at = kNever;
    ReportModel reports;
    uint64_t known_await = 0;
    bool suspended = false;
  };

  static QueueId Id(int queue) { return QueueId{static_cast<uint64_t>(queue) + 1}; }
  static ProcessId IdOfProcess(int process) { return ProcessId{static_cast<uint64_t>(process) + 1}; }
  static int IndexOf(QueueId id) { return static_cast<int>(id) - 1; }
  ProcessModel& ProcessOf(const QueueModel& queue) { return processes_[Index(queue.script->process)]; }
  template <typename... Args>
  void Trace(const Args&... args) {
    if (trace_ == nullptr) return;
    *trace_ << static_cast<double>((now_ - kHistoryStart) / microseconds(1)) / 1000 << " ms: ";
    (*trace_ << ... << args) << "\n";
  }

  void RunUntil(TimePoint end);
  TimePoint NextEvent() const;
  void HandleDue();
  void CheckLimits();
  Duration LimitedFor(int index) const;
  bool IsHeldByNobody(int index) const;
  bool GivenBack() const;
  std::string WhatIsTaken() const;

  // Programs.
  void Launch(int index);
  static void FillStream(QueueModel& queue);
  void BeginHead(int index);
  void Finish(int index);
  void Retire(int index);
  void ReleaseWaiters();
  void EndQueue(int index, Duration notice);
  void SwitchOwnChannels(int process, int device);

  // Agents.
  void ReportProgress(int index);
  void Report(int index);
  void ReportSoon(int index);

  // Events.
  void Do(const Event& event);
  void Do(const Later& later);
  void After(Duration time, Later::Kind kind, int subject) {
    later_.push_back({now_ + time, kind, subject});
    next_later_ = std::min(next_later_, now_ + time);
  }
  void Kill(int process, Duration notice);
  void Remove(int index);
  void ReportAbsent(int index);
  void ChangePolicy(XPolicyType policy);
  void EndAllButOne();

  const History& history_;
  std::ostream* trace_;
  Scheduler scheduler_{SchedulerConfig{}};
  std::vector<ProcessModel> processes_;
  std::vector<QueueModel> queues_;
  std::vector<Contact> contacts_;
  std::vector<ClientModel> clients_;
  std::vector<Later> later_;
  TimePoint continue_at_[kMaxProcesses] = {};
  TimePoint resume_at_[kMaxQueues] = {};
  DeviceModel devices_;
  Promises promises_;
  TimePoint now_ = kHistoryStart;
  TimePoint decide_at_ = kNever;
  TimePoint next_later_ = kNever;
  bool changed_ = true;  // the scheduler has new information since its last decision
  bool moved_ = true;    // the devices must be divided anew
  bool ending_ = false;  // only the survivor is left
  Outcome outcome_;
};

World::World(const History& history, std::ostream* trace)
    : history_(history),
      trace_(trace),
      processes_(history.processes.size()),
      queues_(history.queues.size()),
      contacts_(history.queues.size()),
      devices_(processes_, queues_),
      promises_(devices_, processes_, queues_) {
  clients_.reserve(processes_.size());
  for (size_t i = 0; i < processes_.size(); ++i) {
    processes_[i].script = &history.processes[i];
    clients_.emplace_back(processes_[i]);
    scheduler_.SetTenant(IdOfProcess(static_cast<int>(i)),
                         TenantId{static_cast<uint64_t>(history.processes[i].tenant)});
    if (history.processes[i].job != 0)
      scheduler_.SetJob(IdOfProcess(static_cast<int>(i)),
                        JobId{static_cast<uint64_t>(history.processes[i].job)});
  }
  for (size_t i = 0; i < queues_.size(); ++i) {
    QueueModel& queue = queues_[i];
    queue.script = &history.queues[i];
    queue.hints.priority = queue.script->priority;
    queue.hints.utilization = queue.script->utilization;
    queue.hints.weight = queue.script->weight;
    queue.hints.latency_target_us = queue.script->latency_target_us;
    queue.hints.guarantee_us = queue.script->guarantee_us;
    queue.hints.limit_us = queue.script->limit_us;
    queue.hints.burst_us = queue.script->burst_us;
    if (queue.hints.guarantee_us != 0 || queue.hints.limit_us != 0)
      queue.hints.period_us = kReservationPeriod / microseconds(1);
    queue.next_task = kHistoryStart + queue.script->start;
  }
  later_.reserve(16);
  for (size_t i = 0; i < history.events.size(); ++i)
    After(history.events[i].at, Later::Kind::kScript, static_cast<int>(i));
  scheduler_.SetTimeslice(history.timeslice);
  ChangePolicy(history.policy);
}

Outcome World::Run() {
  RunUntil(kHistoryStart + history_.length);
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
    if (const auto stats = scheduler_.Stats(Id(i), now_)) outcome_.incidents += stats->incidents;
  }
  if (promises_.kept()) {
    EndAllButOne();
    ending_ = true;
    RunUntil(now_ + kGivenBackWithin);
    if (promises_.kept() && !GivenBack()) promises_.NotGivenBack(now_, WhatIsTaken());
  }
  outcome_.broken = promises_.broken();
  for (const QueueModel& queue : queues_) outcome_.retired += queue.retired;
  return outcome_;
}

void World::RunUntil(TimePoint end) {
  int rounds = 0;  // at one moment
  while (promises_.kept()) {
    HandleDue();
    if (moved_) devices_.Settle(now_);
    if (changed_ || now_ >= decide_at_) {
      changed_ = false;
      moved_ = false;
      decide_at_ = scheduler_.Decide(now_, *this);
      if (moved_) devices_.Settle(now_);
    }
    moved_ = false;
    if (ending_ && GivenBack()) return;
    const TimePoint next = std::min(end, std::max(now_, NextEvent()));
    rounds = next == now_ ? rounds + 1 : 0;
    if (rounds > 1000 || ++outcome_.events > kMostEvents) {
      promises_.NotGivenBack(now_, "the scheduler's timers do not come to rest");
      return;
    }
    if (next > now_) {
      CheckLimits();
      promises_.Hold(now_, next - now_);
      devices_.Advance(next - now_);
      now_ = next;
    }
    if (now_ == end) return;
  }
}

// The scheduler's word is checked: nobody else knows whom it keeps from running because of a limit.
void World::CheckLimits() {
  if (!scheduler_.policy().info().has_limits) return;
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i)
    promises_.LimitUsedUp(Index(i), LimitedFor(i), now_);
}

// How long the queue's limit still keeps it from running. One that has ended may still be charged, as long as
// the server has not noticed it.
Duration World::LimitedFor(int index) const {
  const auto stats = scheduler_.Stats(Id(index), now_);
  return stats && queues_[Index(index)].exists ? stats->limited_for : Duration::zero();
}

TimePoint World::NextEvent() const {
  TimePoint next = std::min({decide_at_, next_later_, devices_.NextFinish()});
  for (size_t i = 0; i < queues_.size(); ++i) {
    next = std::min(next, contacts_[i].report_at);
    if (!processes_[Index(queues_[i].script->process)].stopped) next = std::min(next, queues_[i].next_task);
  }
  for (const ClientModel& client : clients_) next = std::min(next, client.next());
  return next;
}

void World::HandleDue() {
  if (now_ >= next_later_) {
    // An effect may add others to the list.
    for (size_t i = 0; i < later_.size(); ++i) {
      if (later_[i].at > now_) continue;
      const Later due = later_[i];
      later_[i].at = kNever;
      Do(due);
    }
    std::erase_if(later_, [](const Later& later) { return later.at == kNever; });
  }
  next_later_ = kNever;
  for (const Later& later : later_) next_later_ = std::min(next_later_, later.at);
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
    if (now_ >= queues_[Index(i)].finish_at) Finish(i);
  }
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
    if (now_ >= queues_[Index(i)].next_task && !ProcessOf(queues_[Index(i)]).stopped) Launch(i);
    if (now_ >= contacts_[Index(i)].report_at) Report(i);
  }
  for (ClientModel& client : clients_) {
    if (now_ >= client.next()) moved_ |= client.Act(now_);
  }
}

// ---- the scheduler's outputs ----

void World::SetControl(QueueId id, const Control& control) {
  const int index = IndexOf(id);
  QueueModel& queue = queues_[Index(index)];
  Contact& contact = contacts_[Index(index)];
  if (!control.run && !queue.hold) queue.overrun = ProcessOf(queue).script->overrun;
  if (queue.hold == control.run) Trace("queue ", index, control.run ? " may run" : " is held");
  moved_ |= queue.hold == control.run;
  queue.hold = !control.run;
  contact.tells_drained = !control.run && control.charges_overruns;
  if (contact.tells_drained) ReportSoon(index);
  if (control.tracked && !contact.tracked) {
    // If the queue has just been made, its commands come later, and all of them report.
    contact.reports.Track(queue, now_ > contact.made_at ? queue.submitted : 0);
    ReportSoon(index);
  }
  contact.tracked = control.tracked;
}

void World::Query(QueueId id) {
  Trace("queue ", IndexOf(id), " is asked");
  contacts_[Index(IndexOf(id))].asked = true;
  ReportSoon(IndexOf(id));
}

void World::SetSlice(ProcessId process, DeviceId device, Duration slice) {
  const int index = static_cast<int>(process) - 1;
  Trace("process ", index, " on device ", static_cast<int>(device) - 1, ": ",
        slice == kNoSlice        ? "off"
        : slice == kDriversSlice ? "the driver's slice"
                                 : std::to_string(slice / microseconds(1)) + " us");
  clients_[Index(index)].Want(static_cast<int>(device) - 1, slice, now_);
}

// ---- programs ----

// Makes the queue, submits its next task, or ends it.
void World::Launch(int index) {
  QueueModel& queue = queues_[Index(index)];
  const QueueScript& script = *queue.script;
  queue.next_task = kNever;
  Contact& contact = contacts_[Index(index)];
  if (now_ >= kHistoryStart + script.end) {
    if (queue.exists) EndQueue(index, ProcessOf(queue).script->reaction);
    return;
  }
  if (!queue.exists) {
    queue.exists = contact.known = true;
    contact.made_at = now_;
    scheduler_.AddQueue(Id(index), IdOfProcess(script.process),
                        DeviceId{static_cast<uint64_t>(script.device) + 1}, queue.hints, now_,
                        {.sliceable = ProcessOf(queue).script->level == 3,
                         .runs_beside_others = ProcessOf(queue).script->level > 1,
                         .reports_overruns = true});
    SwitchOwnChannels(script.process, script.device);
    changed_ = true;
  }
  const uint64_t before = queue.submitted;
  const auto commands = static_cast<uint64_t>(script.commands);
  if (script.style == Style::kLaunchesAhead) {
    FillStream(queue);
    queue.next_task = kHistoryStart + script.end;
  } else if (queue.submitted - queue.retired + commands <= static_cast<uint64_t>(script.room)) {
    queue.submitted += commands;
  }
  if (script.style == Style::kPeriodic) queue.next_task = now_ + script.pause;
  if (before != queue.retired || queue.submitted == before) return;
  BeginHead(index);
  if (contact.tracked) ReportSoon(index);
}

// Its thread launches until a launch must wait.
void World::FillStream(QueueModel& queue) {
  queue.submitted = queue.retired + static_cast<uint64_t>(queue.script->room) + 1;
  queue.launching = true;
}

void World::BeginHead(int index) {
  QueueModel& queue = queues_[Index(index)];
  const QueueScript& script = *queue.script;
  const auto commands = static_cast<uint64_t>(script.commands);
  const uint64_t task = queue.retired / commands;
  const uint64_t at = queue.retired % commands;
  moved_ = true;
  queue.await_retired = queue.await_arrived = 0;
  if (at == 0 && script.long_task == static_cast<int>(task)) {
    devices_.SetHead(queue, 1, static_cast<double>(script.long_command.count()));
  } else {
    const auto together = static_cast<uint64_t>(std::max<int64_t>(1, kTakenAsOne / script.command));
    const auto count = std::min({together, commands - at, queue.submitted - queue.retired});
    devices_.SetHead(queue, static_cast<int>(count),
                     static_cast<double>(count) * static_cast<double>(script.command.count()));
  }
  const auto every = static_cast<uint64_t>(script.every);
  if (at != 0 || task % every != every - 1) return;
  const QueueModel& target = queues_[Index(script.target)];
  if (script.wait == Wait::kKnown && target.exists) {
    queue.await_retired = std::min(target.submitted, target.retired + 3);
    ReportSoon(index);
  }
  if (script.wait == Wait::kHidden) {
    const uint64_t coming = DeviceModel::Coming(target);
    if (coming != 0) queue.await_arrived = target.arrived + coming;
  }
  if (script.wait == Wait::kGang) queue.await_arrived = queue.arrived + 1;
}

void World::Finish(int index) {
  QueueModel& queue = queues_[Index(index)];
  moved_ = true;
  queue.finish_at = kNever;
  queue.rate = 0;
  ++queue.arrived;
  queue.stage = Stage::kSpins;
  if (devices_.IsSatisfied(queue)) Retire(index);
  ReleaseWaiters();
}

void World::ReleaseWaiters() {
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
    if (queues_[Index(i)].stage == Stage::kSpins && devices_.IsSatisfied(queues_[Index(i)])) Retire(i);
  }
}

void World::Retire(int index) {
  QueueModel& queue = queues_[Index(index)];
  const QueueScript& script = *queue.script;
  moved_ = true;
  queue.retired += static_cast<uint64_t>(queue.head_commands);
  queue.stage = Stage::kNone;
  if (queue.launching && !ProcessOf(queue).stopped) FillStream(queue);
  if (queue.submitted > queue.retired) {
    BeginHead(index);
    if (contacts_[Index(index)].tells_drained) ReportSoon(index);
    return;
  }
  if (script.style == Style::kWaits && !(ending_ && !history_.survivor_works))
    queue.next_task = now_ + std::max(kLaunchTime, script.pause);
  // Its program has waited for it.
  if (script.style != Style::kLaunchesAhead && contacts_[Index(index)].tracked) ReportSoon(index);
}

// The program has destroyed the queue, or has died: the rest of its work vanishes.
void World::EndQueue(int index, Duration notice) {
  QueueModel& queue = queues_[Index(index)];
  Trace("queue ", index, " ends");
  moved_ = true;
  queue.exists = false;
  queue.stage = Stage::kNone;
  queue.rate = 0;
  queue.next_task = queue.finish_at = kNever;
  contacts_[Index(index)].report_at = kNever;
  After(notice, Later::Kind::kRemove, index);
  SwitchOwnChannels(queue.script->process, queue.script->device);
  ReleaseWaiters();
}

// At level 3, a program that has suspended all of its queues has its channels off.
void World::SwitchOwnChannels(int process, int device) {
  bool any = false;
  bool all = true;
  for (const QueueModel& queue : queues_) {
    if (!queue.exists || queue.script->process != process || queue.script->device != device) continue;
    any = true;
    all &= queue.suspended;
  }
  processes_[Index(process)].own_off[device] = any && all && history_.processes[Index(process)].level == 3;
  moved_ = true;
}

// ---- agents ----

void World::ReportSoon(int index) {
  TimePoint& at = contacts_[Index(index)].report_at;
  at = std::min(at, now_ + ProcessOf(queues_[Index(index)]).script->reaction);
}

void World::ReportProgress(int index) {
  const QueueModel& queue = queues_[Index(index)];
  ReportModel& reports = contacts_[Index(index)].reports;
  const uint64_t retired = reports.Retired(queue);
  Trace("queue ", index, " reports ", retired, ", has retired ", queue.retired, " of ", queue.submitted,
        ", moves ", reports.moves());
  scheduler_.Moved(Id(index), reports.moves(), now_);
  scheduler_.Progress(Id(index), queue.submitted, retired, now_);
  Contact& contact = contacts_[Index(index)];
  if (contact.tells_drained && !queue.OnDevice()) {
    contact.tells_drained = false;
    scheduler_.Drained(Id(index), ++contact.drains, now_);
  }
  scheduler_.FoundIdle(Id(index), contact.found_idle, now_);
  changed_ = true;
}

void World::Report(int index) {
  QueueModel& queue = queues_[Index(index)];
  Contact& contact = contacts_[Index(index)];
  contact.report_at = kNever;
  if (!queue.exists || ProcessOf(queue).stopped) return;
  if (std::exchange(contact.asked, false)) {
    contact.reports.Ask(queue);
    contact.found_idle += queue.retired == queue.submitted;
  }
  ReportProgress(index);
  if (queue.await_retired == contact.known_await) return;
  contact.known_await = queue.await_retired;
  const Dependency dependency{Id(queue.script->target), queue.await_retired};
  scheduler_.SetDependencies(Id(index), std::span(&dependency, queue.await_retired != 0 ? 1 : 0));
}

void World::ReportAbsent(int index) {
  if (!contacts_[Index(index)].known) return;
  changed_ = true;
  scheduler_.SetAbsent(
      Id(index), contacts_[Index(index)].suspended || ProcessOf(queues_[Index(index)]).seen_stopped, now_);
}

// ---- events ----

void World::Do(const Event& event) {
  switch (event.kind) {
    case EventKind::kKill:
      Kill(event.subject, event.notice);
      return;
    case EventKind::kStop:
      if (!processes_[Index(event.subject)].alive) return;
      Trace("process ", event.subject, " is stopped");
      processes_[Index(event.subject)].stopped = true;
      promises_.Stopped(event.subject);
      continue_at_[event.subject] = now_ + event.length;
      After(event.notice, Later::Kind::kNoticeStop, event.subject);
      After(event.length, Later::Kind::kContinue, event.subject);
      After(event.length + event.notice, Later::Kind::kNoticeStop, event.subject);
      return;
    case EventKind::kSuspend: {
      QueueModel& queue = queues_[Index(event.subject)];
      if (!queue.exists || ProcessOf(queue).stopped) return;
      Trace("queue ", event.subject, " is suspended by its program");
      queue.suspended = true;
      resume_at_[event.subject] = now_ + event.length;
      SwitchOwnChannels(queue.script->process, queue.script->device);
      After(ProcessOf(queue).script->reaction, Later::Kind::kReportSuspension, event.subject);
      After(event.length, Later::Kind::kResume, event.subject);
      return;
    }
    case EventKind::kHints: {
      QueueModel& queue = queues_[Index(event.subject)];
      Trace("queue ", event.subject, " has priority ", event.priority);
      queue.hints.priority = event.priority;
      queue.hints.utilization = event.utilization;
      scheduler_.SetHints(Id(event.subject), queue.hints);
      promises_.ClaimsChanged(scheduler_.policy().info(), scheduler_.timeslice());
      changed_ = true;
      return;
    }
    case EventKind::kPolicy:
      ChangePolicy(event.policy);
      return;
  }
}

void World::Do(const Later& later) {
  switch (later.kind) {
    case Later::Kind::kScript:
      if (!ending_) Do(history_.events[Index(later.subject)]);
      return;
    case Later::Kind::kContinue: {
      ProcessModel& process = processes_[Index(later.subject)];
      if (now_ < continue_at_[later.subject] || !process.stopped || !process.alive) return;
      Trace("process ", later.subject, " is continued");
      process.stopped = false;
      clients_[Index(later.subject)].Continue(now_);
      for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
        QueueModel& queue = queues_[Index(i)];
        if (queue.script->process != later.subject || !queue.exists) continue;
        if (queue.script->style == Style::kLaunchesAhead) queue.next_task = std::min(queue.next_task, now_);
        ReportSoon(i);
      }
      return;
    }
    case Later::Kind::kNoticeStop: {
      ProcessModel& process = processes_[Index(later.subject)];
      process.seen_stopped = process.stopped;
      Trace("process ", later.subject, process.stopped ? " is seen as stopped" : " is seen as continued");
      for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
        if (queues_[Index(i)].script->process != later.subject) continue;
        // A stopped process cannot report. The server reads its counters in shared memory.
        if (queues_[Index(i)].exists) ReportProgress(i);
        ReportAbsent(i);
      }
      promises_.StopNoticed();
      return;
    }
    case Later::Kind::kResume: {
      QueueModel& queue = queues_[Index(later.subject)];
      if (now_ < resume_at_[later.subject] || !queue.suspended || !queue.exists) return;
      Trace("queue ", later.subject, " is resumed by its program");
      queue.suspended = false;
      SwitchOwnChannels(queue.script->process, queue.script->device);
      After(ProcessOf(queue).script->reaction, Later::Kind::kReportSuspension, later.subject);
      return;
    }
    case Later::Kind::kReportSuspension:
      contacts_[Index(later.subject)].suspended = queues_[Index(later.subject)].suspended;
      ReportAbsent(later.subject);
      return;
    case Later::Kind::kRemove:
      Remove(later.subject);
      return;
  }
}

// The server hears that a queue has gone, and with the last one of a killed process that the process has.
void World::Remove(int index) {
  contacts_[Index(index)].known = false;
  scheduler_.RemoveQueue(Id(index), now_);
  changed_ = true;
  const int process = queues_[Index(index)].script->process;
  if (processes_[Index(process)].alive) return;
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].script->process == process && contacts_[i].known) return;
  }
  scheduler_.RemoveProcess(IdOfProcess(process));
}

void World::Kill(int process, Duration notice) {
  Trace("process ", process, " is killed");
  processes_[Index(process)].alive = false;
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
    QueueModel& queue = queues_[Index(i)];
    if (queue.script->process != process) continue;
    queue.next_task = kNever;
    if (queue.exists) EndQueue(i, notice);
  }
}

void World::ChangePolicy(XPolicyType type) {
  const Policy* policy = FindPolicy(type);
  if (policy == nullptr) return;
  Trace("the policy is ", PolicyName(type));
  scheduler_.SetPolicy(*policy);
  promises_.ClaimsChanged(policy->info(), scheduler_.timeslice());
  changed_ = true;
}

// ---- the end ----

void World::EndAllButOne() {
  Trace("all but process ", history_.survivor, " end");
  for (int i = 0; i < static_cast<int>(processes_.size()); ++i) {
    if (i != history_.survivor && processes_[Index(i)].alive) Kill(i, milliseconds(1));
  }
  if (processes_[Index(history_.survivor)].stopped) {
    continue_at_[history_.survivor] = now_;
    Do(Later{now_, Later::Kind::kContinue, history_.survivor});
    Do(Later{now_, Later::Kind::kNoticeStop, history_.survivor});
  }
  for (int i = 0; i < static_cast<int>(queues_.size()); ++i) {
    QueueModel& queue = queues_[Index(i)];
    if (queue.script->process != history_.survivor) continue;
    if (!history_.survivor_works) queue.next_task = kNever;
    if (!queue.exists) continue;
    resume_at_[i] = now_;
    Do(Later{now_, Later::Kind::kResume, i});
    if (history_.survivor_works) continue;
    queue.submitted = queue.retired + (queue.HasHead() ? static_cast<uint64_t>(queue.head_commands) : 0);
    queue.launching = false;
  }
}

// True if the queue is held although no other queue of its device has or gets work. Its own limit may hold
// it.
bool World::IsHeldByNobody(int index) const {
  const QueueModel& queue = queues_[Index(index)];
  const auto is_rival = [&](const QueueModel& other) {
    return other.exists && &other != &queue && other.script->device == queue.script->device &&
           (other.HasHead() || history_.survivor_works);
  };
  return queue.exists && queue.hold && !std::any_of(queues_.begin(), queues_.end(), is_rival) &&
         LimitedFor(index) == Duration::zero();
}

bool World::GivenBack() const {
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (IsHeldByNobody(static_cast<int>(i))) return false;
    if (contacts_[i].known && !queues_[i].exists) return false;
  }
  if (!processes_[Index(history_.survivor)].alive) return true;
  const ClientModel& survivor = clients_[Index(history_.survivor)];
  return survivor.AllSet() && survivor.HasDriversSlices();
}

std::string World::WhatIsTaken() const {
  std::string what;
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (IsHeldByNobody(static_cast<int>(i))) what += "queue " + std::to_string(i) + " is held; ";
  }
  const ClientModel& survivor = clients_[Index(history_.survivor)];
  if (!survivor.AllSet()) what += "its agent still tries to set a slice; ";
  if (!survivor.HasDriversSlices()) what += "it has not the driver's slices; ";
  return what + "though process " + std::to_string(history_.survivor) + " is alone";
}

}  // namespace

Outcome Run(const History& history, std::ostream* trace) { return World(history, trace).Run(); }

}  // namespace xsched::sched::sim
