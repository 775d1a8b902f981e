#include "preempt/scheduling/agent.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/thread.h"
#include "ipc/control_access.h"

namespace xsched::preempt {
namespace {

// Making a stream or starting a program waits no longer than this for a server.
constexpr Duration kWelcomeAtStart = std::chrono::milliseconds(40);
// XHintSetScheduler waits no longer than this for a server, and reports whether there is one.
constexpr Duration kWelcomeWhenAsked = std::chrono::seconds(1);
// How often the thread looks at its descriptors while anything is taken.
constexpr Duration kWatchEvery = Heartbeat::kEvery;
// … and for so long afterwards: a program with work now and then wakes the thread no more often.
constexpr Duration kWatchOn = std::chrono::seconds(1);
// How often the words that a scheduler has left are looked at until there is one again. They hold nobody.
constexpr Duration kVerifyEvery = std::chrono::milliseconds(500);
// While another thread opens a queue's gates.
constexpr Duration kBusy = std::chrono::milliseconds(1);
// The end of a process waits no longer for what it gives back.
constexpr Duration kGiveBackAtEnd = std::chrono::milliseconds(100);

void Ring(const GuardedFd& bell) {
  const uint64_t one = 1;
  // A full counter (EAGAIN) has rung already.
  [[maybe_unused]] ssize_t written = write(bell.get(), &one, sizeof one);
}

void Silence(const GuardedFd& bell) {
  uint64_t count;
  [[maybe_unused]] ssize_t bytes = read(bell.get(), &count, sizeof count);
}

}  // namespace

bool Agent::Start(const Config& config) {
  MutexLock lock(mutex_);
  if (started_) return true;
  Result<ipc::OwnedSegment> segment = ipc::CreateSegment();
  if (!segment) {
    XSCHED_WARN("%s: running unscheduled", segment.error().text());
    return false;
  }
  UniqueFd agent_bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  UniqueFd scheduler_bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!agent_bell || !scheduler_bell) {
    XSCHED_WARN("%s: running unscheduled", Error::FromErrno(errno, "cannot make an eventfd").text());
    return false;
  }
  owned_ = std::move(*segment);
  memfd_ = GuardedFd(std::move(owned_.memfd));
  agent_bell_fd_ = GuardedFd(std::move(agent_bell));
  scheduler_bell_fd_ = GuardedFd(std::move(scheduler_bell));
  segment_.store(owned_.mapping.get(), std::memory_order_release);
  agent_bell_.store(&agent_bell_fd_, std::memory_order_release);
  started_ = true;
  timeslice_us_ = config.timeslice_us;
  UseScheduler(config.scheduler, config.policy);
  AwaitWelcome(kWelcomeAtStart);
  return true;
}

ipc::ControlBlock* Agent::ResetBlock(uint32_t index) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  ipc::ResetBlock(*segment, index);
  return &segment->blocks[index];
}

SharedMemory Agent::ControlBlocks() const {
  return {segment_.load(std::memory_order_acquire), ipc::kSegmentSize};
}

void Agent::UseScheduler(XSchedulerType type, XPolicyType policy) {
  if (lost_.load(std::memory_order_acquire)) return;
  if (type == kSchedulerLocal) {
    scheduler_bell_.store(&agent_bell_fd_, std::memory_order_release);
    const sched::Policy* chosen = sched::FindPolicy(policy);
    if (chosen == nullptr || !local_.Start(*owned_.mapping.get(), *chosen, shared_)) return;
    client_ = &local_;
    if (StartThread()) RegisterQueues();
  } else if (type == kSchedulerGlobal) {
    scheduler_bell_.store(&scheduler_bell_fd_, std::memory_order_release);
    shared_ = true;
    server_.Start(memfd_.get(), scheduler_bell_fd_.get(), MonotonicClock::now());
    client_ = &server_;
    StartThread();
  }
}

// The thread receives it; the lock is free meanwhile.
void Agent::AwaitWelcome(Duration at_most) {
  const TimePoint deadline = MonotonicClock::now() + at_most;
  while (thread_running_ && server_.state() == ServerClient::State::kGreeting &&
         MonotonicClock::now() < deadline) {
    welcome_.WaitUntil(mutex_, deadline);
  }
}

void Agent::RegisterQueues() {
  // What an earlier scheduler has written counts no more.
  OpenControls();
  state_.SetScheduled(true);
  bool said = timeslice_us_ == 0 || client_->Timeslice(timeslice_us_);
  ForEachQueue([&](XQueue& queue) {
    said = said && client_->QueueCreated(queue) && (!queue.suspended() || client_->Absent(queue));
  });
  AfterChange(said);
}

template <typename Visit>
void Agent::ForEachQueue(Visit&& visit) {
  // Letting a queue go may be its end, which calls the driver.
  const NoDriverCalls here;
  for (uint32_t next = 0; XQueuePin queue = queues_.PinNext(&next);) visit(*queue);
}

bool Agent::StartThread() {
  if (thread_running_) return true;
  pthread_t thread;
  if (int error = StartQuietThread(&thread, &Agent::Main, this)) {
    XSCHED_WARN("%s: running unscheduled", Error::FromErrno(error, "cannot start a thread").text());
    StopScheduler();
    return false;
  }
  pthread_setname_np(thread, "xsched-agent");
  pthread_detach(thread);
  thread_running_ = true;
  return true;
}

void Agent::StopScheduler() {
  if (client_ != nullptr) client_->Stop();
  client_ = nullptr;
  LeaveServer();
}

// Nobody schedules for now. The caller sees to it that the thread attends to the queues.
void Agent::LeaveServer() {
  state_.SetScheduled(false);
  slices_.WantDrivers();
  OpenControls();
  welcome_.NotifyAll();
}

void Agent::OpenControls() {
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) {
    ipc::RestoreWords(owned_.mapping->blocks[i], ipc::kOpenWords);
  }
}

bool Agent::AnythingTaken() {
  if (slices_.AnyTaken()) return true;
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) {
    // The next launch of a queue without work tells us.
    if (ipc::AnythingTaken(owned_.mapping->blocks[i])) return true;
  }
  return false;
}

// ---- what queues tell ----

// `said`: the client has taken what has changed.
void Agent::AfterChange(bool said) {
  if (said && !client_->Commit(MonotonicClock::now())) return;
  if (!said) LeaveServer();
  Wake();
}

template <typename Change>
bool Agent::Tell(Change&& change) {
  MutexLock lock(mutex_);
  if (client_ == nullptr || !client_->connected()) return false;
  const bool said = change(*client_);
  AfterChange(said);
  return said;
}

void Agent::QueueCreated(XQueue& queue) {
  Tell([&](SchedulerClient& client) { return client.QueueCreated(queue); });
}
void Agent::QueueDestroyed(XQueue& queue) {
  Tell([&](SchedulerClient& client) { return client.QueueDestroyed(queue); });
}
void Agent::HintsChanged(XQueue& queue) {
  Tell([&](SchedulerClient& client) { return client.Hints(queue); });
}
void Agent::ConfigChanged(XQueue& queue) {
  Tell([&](SchedulerClient& client) { return client.Config(queue); });
}
void Agent::AbsentChanged(XQueue& queue) {
  Tell([&](SchedulerClient& client) { return client.Absent(queue); });
}
XResult Agent::SetTimeslice(Timeslice timeslice_us) {
  const bool said = Tell([=](SchedulerClient& client) { return client.Timeslice(timeslice_us); });
  return said ? kXSchedSuccess : kXSchedErrorNotFound;
}

XResult Agent::SetScheduler(XSchedulerType type, XPolicyType policy) {
  if (type == kSchedulerLocal && sched::FindPolicy(policy) == nullptr) return kXSchedErrorNotSupported;
  MutexLock lock(mutex_);
  if (lost_.load(std::memory_order_acquire)) return kXSchedErrorNotFound;
  StopScheduler();
  UseScheduler(type, policy);
  Wake();
  AwaitWelcome(kWelcomeWhenAsked);
  return type != kSchedulerGlobal || server_.connected() ? kXSchedSuccess : kXSchedErrorNotFound;
}

void Agent::RingScheduler(uint32_t index) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  const GuardedFd* bell = scheduler_bell_.load(std::memory_order_acquire);
  if (segment == nullptr || bell == nullptr) return;
  if (!bell->Intact()) return LoseDescriptors();
  ipc::RingScheduler(*segment, index, bell->get());
}

void Agent::Wake() {
  const GuardedFd* bell = agent_bell_.load(std::memory_order_acquire);
  if (bell == nullptr) return;
  if (!bell->Intact()) return LoseDescriptors();
  Ring(*bell);
}

void Agent::StartWatching() {
  if (!watching_.exchange(true, std::memory_order_seq_cst)) Wake();
}

void Agent::GiveBackLater() {
  MutexLock lock(mutex_);
  if (!started_) return;
  give_back_ = true;
  StartThread();
  Wake();
}

// The program has closed descriptors that it does not know, and what it opens may have their numbers. The
// thread, which looks now and then while anything is taken, does the rest. Lock-free, async-signal-safe.
void Agent::LoseDescriptors() {
  if (lost_.exchange(true, std::memory_order_seq_cst)) return;
  state_.SetScheduled(false);
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) ipc::ForceOpen(segment->blocks[i], true);
}

void Agent::AddDependency(XQueue& waiter, XQueue& owner, uint64_t until) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  if (segment == nullptr || owner.retired() >= until) return;
  ipc::DependencySlot* chosen = nullptr;
  for (ipc::DependencySlot& slot : segment->depends[waiter.index()]) {
    const ipc::Wait old = ipc::ReadWait(slot);
    // The server can write here as well: what it writes is no index until it was checked.
    bool passed = old.until == 0 || old.queue >= ipc::kMaxQueues ||
                  segment->blocks[old.queue].retired.load(std::memory_order_relaxed) >= old.until ||
                  !ipc::MeansQueue(old, queues_.HandleAt(old.queue));  // that queue is gone
    if (old.queue == owner.index() || passed) chosen = &slot;
    if (old.queue == owner.index() && !passed) break;
  }
  // All four in use by other queues: the scheduler's watchdog must do.
  if (chosen == nullptr) return;
  ipc::WriteWait(*chosen, {owner.index(), ipc::HandleGeneration(owner.id()), until});
  RingScheduler(waiter.index());
}

// ---- the thread ----

void* Agent::Main(void* agent) {
  static_cast<Agent*>(agent)->Run();
  return nullptr;
}

void Agent::Run() {
  const NoDriverCalls here;
  TimePoint wake_at{};
  for (;;) {
    pollfd fds[2] = {{-1, POLLIN, 0}, {-1, 0, 0}};
    {
      MutexLock lock(mutex_);
      // What is not ours any more would wake us all the time.
      if (agent_bell_fd_.Intact()) fds[0].fd = agent_bell_fd_.get();
      fds[1].fd = client_ != nullptr ? client_->fd() : -1;
      fds[1].events = client_ != nullptr ? client_->events() : short{0};
    }
    timespec timeout{};
    if (wake_at != kNever) {
      Duration left = wake_at - MonotonicClock::now();
      if (left < Duration::zero()) left = Duration::zero();
      timeout.tv_sec = left / std::chrono::seconds(1);
      timeout.tv_nsec = (left % std::chrono::seconds(1)).count();
    }
    ppoll(fds, 2, wake_at == kNever ? nullptr : &timeout, nullptr);
    bool ending;
    {
      MutexLock lock(mutex_);
      // Before looking at anything, so that who rings after our look wakes us again.
      if (agent_bell_fd_.Intact()) Silence(agent_bell_fd_);
      wake_at = Tick(MonotonicClock::now());
      give_back_ = false;
      ending = Ending();
    }
    const TimePoint again = GiveBack(MonotonicClock::now());
    wake_at = std::min(wake_at, again);
    if (!ending || again != kNever) continue;
    MutexLock lock(mutex_);
    if (give_back_ || !Ending()) continue;
    thread_running_ = false;
    return;
  }
}

bool Agent::DescriptorsAreOurs() const {
  return !lost_.load(std::memory_order_acquire) && agent_bell_fd_.Intact() && scheduler_bell_fd_.Intact() &&
         memfd_.Intact() && (server_.fd() < 0 || server_.socket_is_ours());
}

TimePoint Agent::Tick(TimePoint now) {
  if (Ending()) return kNever;
  if (!DescriptorsAreOurs()) {
    LoseDescriptors();
    StopScheduler();
    XSCHED_WARN("this program has closed descriptors that are XSched's: running unscheduled from now on");
    return kNever;
  }
  const TimePoint wake_at = ServeClient(now);
  // First: who finds something taken from now on wakes us.
  watching_.store(false, std::memory_order_seq_cst);
  if (AnythingTaken()) watch_until_ = now + kWatchOn;
  if (now >= watch_until_) return wake_at;
  watching_.store(true, std::memory_order_seq_cst);
  return std::min(wake_at, now + kWatchEvery);
}

TimePoint Agent::ServeClient(TimePoint now) {
  const SchedulerClient::News news = client_->Serve(now);
  if (news == SchedulerClient::News::kWelcomed) {
    RegisterQueues();
    welcome_.NotifyAll();
  }
  if (news == SchedulerClient::News::kLost || !client_->Beat(AnythingTaken(), now)) LeaveServer();
  client_->ConnectIfDue(now);
  if (client_->connected()) return client_->wake_at();
  // A round of a server that we have left may have been under way.
  OpenControls();
  return std::min(client_->wake_at(), now + kVerifyEvery);
}

TimePoint Agent::GiveBack(TimePoint now) {
  // First what needs no driver: opening one queue's gates, where the host does it, may take until another's
  // is open.
  ForEachQueue([](XQueue& queue) { queue.ApplyLevels(); });
  const TimePoint slices = slices_.Apply(now);
  const XQueue::Left left = AttendQueues(IfBusy::kReturn);
  if (left.stopped) {
    retry_.Failed(now);
  } else {
    retry_.Reset();
  }
  return std::min({slices, retry_.next(), left.gates ? now + kBusy : kNever});
}

XQueue::Left Agent::AttendQueues(IfBusy if_busy) {
  XQueue::Left all;
  ForEachQueue([&](XQueue& queue) {
    urgencies_.Request(queue);
    const XQueue::Left left = queue.Attend(if_busy);
    all.gates |= left.gates;
    all.stopped |= left.stopped;
    queues_.FinishIfDrained(queue);
  });
  return all;
}

// ---- the end of the process, and its copies ----

void Agent::Shutdown() {
  state_.ShutDown();
  {
    MutexLock lock(mutex_);
    if (!started_) return;
    StopScheduler();
  }
  // The driver's own end may wait for what is stopped.
  const TimePoint until = MonotonicClock::now() + kGiveBackAtEnd;
  for (TimePoint now = MonotonicClock::now();; now = MonotonicClock::now()) {
    ForEachQueue([](XQueue& queue) { queue.ApplyLevels(); });
    const TimePoint slices = slices_.Apply(now);
    const XQueue::Left left = AttendQueues(IfBusy::kWait);
    if ((slices == kNever && !left.stopped) || now >= until) break;
    usleep(1000);
  }
  // A call that is under way there should not meet the driver's own end.
  driver_.AwaitUntil(until);
  Wake();
}

void Agent::ResetAfterFork() {
  mutex_.ResetAfterFork();
  welcome_.ResetAfterFork();
  local_.ForgetAfterFork();
  if (!started_) return;
  // Our copies of the parent's descriptors would keep its connection open after its end.
  server_.ForgetAfterFork();
  memfd_.Reset();
  agent_bell_.store(nullptr, std::memory_order_relaxed);
  scheduler_bell_.store(nullptr, std::memory_order_relaxed);
  agent_bell_fd_.Reset();
  scheduler_bell_fd_.Reset();
  watching_.store(false, std::memory_order_relaxed);
  lost_.store(false, std::memory_order_relaxed);
  retry_.Reset();
  give_back_ = false;
  // Launches of this process must not count in the parent's blocks: put private memory in their place. Zeroed
  // flags make every queue unscheduled.
  void* own = mmap(owned_.mapping.get(), ipc::kSegmentSize, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (own == MAP_FAILED) XSCHED_WARN("a forked process still counts its launches with its parent's");
  owned_.mapping.Forget();
  segment_.store(nullptr, std::memory_order_relaxed);
  started_ = shared_ = false;
  thread_running_ = false;
  client_ = nullptr;
}

// ---- what the server says ----

void Agent::OnSlice(XDevice device, uint64_t slice_us) { slices_.Want(device, slice_us); }

void Agent::OnHints(XQueueHandle handle, const sched::Hints& hints) {
  const uint32_t index = XQueueIndex(handle);
  if (index >= ipc::kMaxQueues || queues_.HandleAt(index) != handle) return;
  // Its slot is not used again before the agent, under whose lock we are, has heard of its end.
  queues_.At(index).SetHints(hints);
  urgencies_.Changed();
}

}  // namespace xsched::preempt
