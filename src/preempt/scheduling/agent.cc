#include "preempt/scheduling/agent.h"

#include <algorithm>
#include <utility>

#include "base/handle.h"
#include "base/log.h"
#include "base/no_cancellation.h"
#include "ipc/hints.h"

namespace xsched::preempt {
namespace {

// The longest wait for a server when a stream is made or a program starts.
constexpr Duration kWelcomeAtStart = std::chrono::milliseconds(40);
// The longest wait of XHintSetScheduler for a server. It reports whether there is one.
constexpr Duration kWelcomeWhenAsked = std::chrono::seconds(1);
// How often the control blocks are checked while there is no scheduler. What they say holds no queue then.
constexpr Duration kVerifyEvery = std::chrono::milliseconds(500);
// How often the driver is asked about queues that wait for their last report.
constexpr Duration kDrainedEvery = std::chrono::milliseconds(500);
// The longest time that the end of a process waits until everything is given back.
constexpr Duration kGiveBackAtEnd = std::chrono::milliseconds(100);
constexpr Duration kGiveBackAgain = std::chrono::milliseconds(1);

}  // namespace

bool Agent::Start(const Config& config) {
  MutexLock lock(mutex_);
  if (started_) {
    // Another thread has started it just now.
    AwaitWelcome(welcome_at_start_until_);
    return true;
  }
  if (Result<> created = memory_.Create(); !created) {
    XSCHED_WARN("%s: running unscheduled", created.error().text());
    return false;
  }
  started_ = true;
  if (timeslice_us_ == 0) timeslice_us_ = config.timeslice_us;
  if (at_a_time_ == 0) at_a_time_ = config.at_a_time;
  UseScheduler(config.scheduler, config.policy);
  welcome_at_start_until_ = MonotonicClock::now() + kWelcomeAtStart;
  AwaitWelcome(welcome_at_start_until_);
  return true;
}

void Agent::UseScheduler(XSchedulerType type, const sched::PolicySetting& policy) {
  if (memory_.lost()) return;
  if (type == kSchedulerLocal) {
    memory_.UseBellOf(ControlMemory::Scheduler::kAgents);
    if (!local_.Start(memory_.segment(), policy, shared_)) return;
    client_ = &local_;
    if (StartThread()) RegisterQueues();
  } else if (type == kSchedulerGlobal) {
    memory_.UseBellOf(ControlMemory::Scheduler::kServers);
    shared_ = true;
    server_.Start(memory_.memfd(), memory_.scheduler_bell(), clock_());
    client_ = &server_;
    StartThread();
  }
}

// The agent's thread receives the welcome. The lock is free meanwhile.
void Agent::AwaitWelcome(TimePoint deadline) {
  while (thread_running_ && server_.state() == ServerClient::State::kGreeting &&
         MonotonicClock::now() < deadline) {
    welcome_.WaitUntil(mutex_, deadline);
  }
}

void Agent::RegisterQueues() {
  // What a former scheduler has written does not count any more.
  memory_.OpenControls();
  state_.SetScheduled(true);
  SchedulerClient& client = *client_;
  bool said = timeslice_us_ == 0 || client.Timeslice(timeslice_us_);
  said = said && (at_a_time_ == 0 || client.AtATime(at_a_time_));
  for (size_t i = 0; i < job_count_; ++i) said = said && client.JoinJob(jobs_[i]);
  ForEachQueue(queues_, [&](XQueue& queue) {
    said = said && client.QueueCreated(queue) && (!queue.suspended() || client.Absent(queue));
  });
  AfterChange(said);
}

bool Agent::StartThread() {
  if (thread_running_) return true;
  if (int error = thread_.Start(*this)) {
    XSCHED_WARN("%s: running unscheduled", Error::FromErrno(error, "cannot start a thread").text());
    StopScheduler();
    return false;
  }
  thread_running_ = true;
  return true;
}

void Agent::StopScheduler() {
  if (client_ != nullptr) client_->Stop();
  client_ = nullptr;
  LeaveServer();
}

// There is no scheduler for now. The caller makes sure that the thread attends to the queues.
void Agent::LeaveServer() {
  state_.SetScheduled(false);
  slices_.WantDrivers();
  memory_.OpenControls();
  memory_limit_.LeaveTenant();
  welcome_.NotifyAll();
}

// ---- notifications from queues ----

// `said`: the scheduler's client has accepted the change.
void Agent::AfterChange(bool said) {
  if (said && !client_->Commit(clock_())) return;
  if (!said) LeaveServer();
  Wake();
}

template <typename Change>
bool Agent::Notify(Change&& change) {
  const NoCancellation with_lock;
  MutexLock lock(mutex_);
  if (client_ == nullptr || !client_->connected()) return false;
  const bool said = change(*client_);
  AfterChange(said);
  return said;
}

void Agent::QueueCreated(XQueue& queue) {
  Notify([&](SchedulerClient& client) { return client.QueueCreated(queue); });
}
void Agent::QueueDestroyed(XQueue& queue) {
  Notify([&](SchedulerClient& client) { return client.QueueDestroyed(queue); });
}
void Agent::HintsChanged(XQueue& queue) {
  Notify([&](SchedulerClient& client) { return client.Hints(queue); });
}
void Agent::ConfigChanged(XQueue& queue) {
  Notify([&](SchedulerClient& client) { return client.Config(queue); });
}
void Agent::AbsentChanged(XQueue& queue) {
  Notify([&](SchedulerClient& client) { return client.Absent(queue); });
}
void Agent::SetTimeslice(Timeslice timeslice_us) {
  const NoCancellation with_lock;
  MutexLock lock(mutex_);
  timeslice_us_ = timeslice_us;
  if (client_ != nullptr && client_->connected()) AfterChange(client_->Timeslice(timeslice_us));
}
void Agent::SetAtATime(size_t queues) {
  const NoCancellation with_lock;
  MutexLock lock(mutex_);
  at_a_time_ = queues;
  if (client_ != nullptr && client_->connected()) AfterChange(client_->AtATime(queues));
}

void Agent::JoinJob(std::span<const char> id) {
  const uint64_t number = ipc::JobNumber(id);
  const NoCancellation with_lock;
  MutexLock lock(mutex_);
  const auto end = jobs_.begin() + static_cast<ptrdiff_t>(job_count_);
  if (job_count_ == jobs_.size() || std::find(jobs_.begin(), end, number) != end) return;
  jobs_[job_count_++] = number;
  if (client_ != nullptr && client_->connected()) AfterChange(client_->JoinJob(number));
}

XResult Agent::SetScheduler(XSchedulerType type, XPolicyType policy) {
  const sched::Policy* chosen = sched::FindPolicy(policy);
  if (type == kSchedulerLocal && chosen == nullptr) return kXSchedErrorNotSupported;
  if (chosen == nullptr) chosen = sched::FindPolicy(sched::kDefaultPolicy);  // not used
  const NoCancellation with_lock;
  MutexLock lock(mutex_);
  if (memory_.lost()) return kXSchedErrorNotFound;
  StopScheduler();
  UseScheduler(type, *chosen);
  Wake();
  AwaitWelcome(MonotonicClock::now() + kWelcomeWhenAsked);
  return type != kSchedulerGlobal || server_.connected() ? kXSchedSuccess : kXSchedErrorNotFound;
}

bool Agent::GiveBackLater() {
  const NoCancellation with_lock;
  MutexLock lock(mutex_);
  if (!started_) return true;
  give_back_ = true;
  const bool runs = StartThread();
  Wake();
  return runs;
}

// ---- the thread ----

AgentThread::Work::Sources Agent::WhatToAwait() {
  MutexLock lock(mutex_);
  if (client_ == nullptr) return {memory_.agent_bell(), -1, 0};
  return {memory_.agent_bell(), client_->fd(), client_->events()};
}

std::optional<TimePoint> Agent::Attend(TimePoint now) {
  const NoDriverCalls here;
  TimePoint wake_at;
  bool ending;
  {
    MutexLock lock(mutex_);
    // Reset the bell before checking anything: a later ring then wakes us again.
    memory_.SilenceAgent();
    wake_at = Tick(now);
    give_back_ = false;
    ending = Ending();
  }
  const TimePoint again = attendant_.Attend(clock_());
  const TimePoint drained = queues_.AnyDraining() ? now + kDrainedEvery : kNever;
  if (!ending || again != kNever) return std::min({wake_at, again, drained});
  MutexLock lock(mutex_);
  if (give_back_ || !Ending()) return wake_at;
  thread_running_ = false;
  return std::nullopt;
}

bool Agent::DescriptorsAreOurs() {
  if (server_.fd() >= 0 && !server_.socket_is_ours()) memory_.Lose();
  return memory_.Intact();
}

TimePoint Agent::Tick(TimePoint now) {
  if (Ending()) return kNever;
  if (!DescriptorsAreOurs()) {
    StopScheduler();
    XSCHED_WARN("this program has closed descriptors that are XSched's: running unscheduled from now on");
    return kNever;
  }
  const TimePoint wake_at = ServeClient(now);
  state_.taken_watch.Pause();
  return std::min(wake_at, state_.taken_watch.Checked(AnythingTaken(), now));
}

TimePoint Agent::ServeClient(TimePoint now) {
  const SchedulerClient::News news = client_->Serve(now);
  if (news == SchedulerClient::News::kWelcomed) {
    memory_limit_.Welcomed();
    RegisterQueues();
    welcome_.NotifyAll();
  }
  ReportConfigs();
  if (news == SchedulerClient::News::kLost || !client_->Beat(AnythingTaken(), now)) LeaveServer();
  client_->ConnectIfDue(now);
  if (client_->connected()) return client_->wake_at();
  // A server that we have left may have finished its round meanwhile.
  memory_.OpenControls();
  return std::min(client_->wake_at(), now + kVerifyEvery);
}

// ---- the end of the process, and forks ----

void Agent::Shutdown() {
  state_.ShutDown();
  {
    MutexLock lock(mutex_);
    if (!started_) return;
    StopScheduler();
  }
  // The driver's own exit may wait for stopped commands, and for those behind gates. The agent's thread opens
  // these, because the driver may not return from it, and the process must end all the same.
  const TimePoint until = MonotonicClock::now() + kGiveBackAtEnd;
  bool requested = false;
  for (TimePoint now = MonotonicClock::now(); !attendant_.AttendLast(now) && now < until;
       now = MonotonicClock::now()) {
    if (!std::exchange(requested, true) && !GiveBackLater()) attendant_.Attend(now);
    SleepFor(kGiveBackAgain);
  }
  // A call that is in progress should end before the driver's own exit.
  driver_.AwaitUntil(until);
  Wake();
}

void Agent::ResetAfterFork() {
  mutex_.ResetAfterFork();
  welcome_.ResetAfterFork();
  local_.ForgetAfterFork();
  if (!started_) return;
  server_.ForgetAfterFork();
  memory_limit_.LeaveTenant();
  memory_.ForgetAfterFork();
  state_.taken_watch.Pause();
  attendant_.ResetAfterFork();
  give_back_ = false;
  started_ = shared_ = false;
  job_count_ = 0;
  thread_running_ = false;
  client_ = nullptr;
}

// ---- messages of the server ----

void Agent::OnSlice(XDevice device, uint64_t slice_us) { slices_.Want(device, slice_us); }

XQueue* Agent::QueueOf(XQueueHandle handle) {
  const uint32_t index = HandleIndex(handle);
  return index < ipc::kMaxQueues && queues_.HandleAt(index) == handle ? &queues_.At(index) : nullptr;
}

void Agent::OnHints(const ipc::QueueHints& message) {
  mutex_.AssertHeld();
  XQueue* queue = QueueOf(message.handle);
  if (queue == nullptr) return;
  queue->SetHints(ipc::HintsIn(message, queue->hints()));
  urgencies_.Changed();
}

// The thread attends to all queues after this, so a queue that is held gets its new level at once.
void Agent::OnConfig(XQueueHandle handle, uint32_t level, const LaunchConfig& config) {
  mutex_.AssertHeld();
  XQueue* queue = QueueOf(handle);
  if (queue == nullptr) return;
  if (level != kPreemptLevelUnknown) {
    const auto best = static_cast<uint32_t>(queue->hwq().ops.max_level);
    queue->state().SetLevel(static_cast<XPreemptLevel>(std::min(level, best)));
  }
  LaunchConfig wanted = queue->config();
  if (config.threshold > 0) wanted.threshold = config.threshold;
  if (config.batch_size > 0) wanted.batch_size = config.batch_size;
  if (wanted.batch_size <= wanted.threshold) queue->state().SetConfig(wanted);
  configs_unreported_ = true;
}

void Agent::ReportConfigs() {
  if (!std::exchange(configs_unreported_, false) || !client_->connected()) return;
  SchedulerClient& client = *client_;
  bool said = true;
  ForEachQueue(queues_, [&](XQueue& queue) { said = said && client.Config(queue); });
  if (!said) LeaveServer();
}

}  // namespace xsched::preempt
