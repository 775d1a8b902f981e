#include "preempt/agent.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/no_destroy.h"
#include "base/thread.h"
#include "preempt/hw_queue.h"
#include "preempt/process_slices.h"
#include "preempt/settings.h"
#include "preempt/xqueue_table.h"

namespace xsched::preempt {
namespace {

constinit NoDestroy<Agent> the_agent;

void Ring(int bell) {
  const uint64_t one = 1;
  // A full counter (EAGAIN) has rung already.
  [[maybe_unused]] ssize_t written = write(bell, &one, sizeof one);
}

void Silence(int bell) {
  uint64_t count;
  [[maybe_unused]] ssize_t bytes = read(bell, &count, sizeof count);
}

void OpenControl(ipc::ControlBlock& block) {
  // Flags first: a launch that still sees the old gate must not take the queue for scheduled.
  block.flags.store(0, std::memory_order_release);
  block.gate.store(ipc::kGateRun, std::memory_order_release);
}

}  // namespace

Agent& Agent::Get() { return *the_agent; }

bool Agent::Start() {
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
  agent_bell_fd_ = std::move(agent_bell);
  scheduler_bell_fd_ = std::move(scheduler_bell);
  segment_.store(owned_.mapping.get(), std::memory_order_release);
  agent_bell_.store(agent_bell_fd_.get(), std::memory_order_release);
  started_ = true;
  InstallProcessHandlers();
  UseScheduler(GetSettings().scheduler, GetSettings().policy);
  return true;
}

ipc::ControlBlock* Agent::ResetBlock(uint32_t index) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  ipc::ControlBlock& block = segment->blocks[index];
  OpenControl(block);
  block.query.store(0, std::memory_order_relaxed);
  block.submitted.store(0, std::memory_order_relaxed);
  block.open.store(0, std::memory_order_relaxed);
  block.pause.store(0, std::memory_order_relaxed);
  block.passed.store(0, std::memory_order_relaxed);
  block.retired.store(0, std::memory_order_release);
  for (ipc::DependencySlot& slot : segment->depends[index]) slot.until.store(0, std::memory_order_relaxed);
  return &block;
}

void Agent::SharedMemory(void** memory, size_t* size) const {
  *memory = segment_.load(std::memory_order_acquire);
  *size = ipc::kSegmentSize;
}

void Agent::UseScheduler(XSchedulerType type, XPolicyType policy) {
  type_ = type;
  const Timeslice timeslice_us = GetSettings().timeslice_us;
  if (type == kSchedulerLocal) {
    scheduler_bell_.store(agent_bell_fd_.get(), std::memory_order_release);
    const sched::Policy* chosen = sched::FindPolicy(policy);
    if (chosen == nullptr || !local_.Start(*owned_.mapping.get(), *chosen)) return;
    if (timeslice_us != 0) local_.Timeslice(std::chrono::microseconds(timeslice_us));
    ForEachQueue([this](XQueue& queue) { local_.QueueCreated(queue); });
    if (StartThread()) DecideLocally();
  } else if (type == kSchedulerGlobal) {
    scheduler_bell_.store(scheduler_bell_fd_.get(), std::memory_order_release);
    ConnectAndRegister();
    StartThread();
  }
}

void Agent::ConnectAndRegister() {
  if (!server_.Connect(owned_, scheduler_bell_fd_.get())) return;
  if (GetSettings().timeslice_us != 0) server_.Timeslice(GetSettings().timeslice_us);
  ForEachQueue([this](XQueue& queue) { AfterSend(server_.QueueCreated(queue)); });
}

template <typename Visit>
void Agent::ForEachQueue(Visit&& visit) {
  for (uint32_t next = 0; XQueuePin queue = XQueueTable::PinNext(&next);) visit(*queue);
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
  if (local_.running()) local_.Stop();
  if (server_.connected()) server_.Disconnect();
  type_ = kSchedulerAppManaged;
  OpenControls();
}

void Agent::OpenControls() {
  ProcessSlices::Get().WantDrivers();
  for (ipc::ControlBlock& block : owned_.mapping->blocks) {
    // Untouched blocks stay untouched: no page is used for them.
    if (block.flags.load(std::memory_order_relaxed) != 0 ||
        block.gate.load(std::memory_order_relaxed) != ipc::kGateRun) {
      OpenControl(block);
    }
  }
}

// On the caller's thread: who may be held from now on has bounds on what is in flight before its next launch.
// The agent's thread acts on the rest.
void Agent::DecideLocally() {
  local_.Decide(MonotonicClock::now());
  Ring(agent_bell_fd_.get());
}

// ---- what queues tell ----

void Agent::AfterSend(bool sent) {
  if (sent || type_ != kSchedulerGlobal) return;
  OpenControls();
  Ring(agent_bell_fd_.get());
}

void Agent::QueueCreated(XQueue& queue) {
  MutexLock lock(mutex_);
  if (local_.running()) {
    local_.QueueCreated(queue);
    DecideLocally();
  } else if (server_.connected()) {
    AfterSend(server_.QueueCreated(queue));
  }
}

void Agent::QueueDestroyed(XQueue& queue) {
  MutexLock lock(mutex_);
  if (local_.running()) {
    local_.QueueDestroyed(queue);
    DecideLocally();
  } else if (server_.connected()) {
    AfterSend(server_.QueueDestroyed(queue.index()));
  }
}

void Agent::HintsChanged(XQueue& queue) {
  MutexLock lock(mutex_);
  if (local_.running()) {
    local_.Hints(queue);
    DecideLocally();
  } else if (server_.connected()) {
    AfterSend(server_.Hints(queue));
  }
}

void Agent::ConfigChanged(XQueue& queue) {
  MutexLock lock(mutex_);
  if (server_.connected()) AfterSend(server_.Config(queue));
}

void Agent::AbsentChanged(XQueue& queue) {
  MutexLock lock(mutex_);
  if (local_.running()) {
    local_.Absent(queue);
    DecideLocally();
  } else if (server_.connected()) {
    AfterSend(server_.Absent(queue));
  }
}

XResult Agent::SetTimeslice(Timeslice timeslice_us) {
  MutexLock lock(mutex_);
  if (local_.running()) {
    local_.Timeslice(std::chrono::microseconds(timeslice_us));
    DecideLocally();
    return kXSchedSuccess;
  }
  if (!server_.connected()) return kXSchedErrorNotFound;
  bool sent = server_.Timeslice(timeslice_us);
  AfterSend(sent);
  return sent ? kXSchedSuccess : kXSchedErrorNotFound;
}

XResult Agent::SetScheduler(XSchedulerType type, XPolicyType policy) {
  if (!Start()) return kXSchedErrorUnknown;
  if (type == kSchedulerLocal && sched::FindPolicy(policy) == nullptr) return kXSchedErrorNotSupported;
  MutexLock lock(mutex_);
  StopScheduler();
  UseScheduler(type, policy);
  Ring(agent_bell_fd_.get());
  return type != kSchedulerGlobal || server_.connected() ? kXSchedSuccess : kXSchedErrorNotFound;
}

void Agent::RingScheduler(uint32_t index) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  if (segment != nullptr)
    ipc::RingScheduler(*segment, index, scheduler_bell_.load(std::memory_order_acquire));
}

void Agent::Wake() {
  int bell = agent_bell_.load(std::memory_order_acquire);
  if (bell >= 0) Ring(bell);
}

void Agent::AddDependency(XQueue& waiter, XQueue& owner, uint64_t until) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  if (segment == nullptr || owner.retired() >= until) return;
  ipc::DependencySlot* chosen = nullptr;
  for (ipc::DependencySlot& slot : segment->depends[waiter.index()]) {
    uint64_t old = slot.until.load(std::memory_order_relaxed);
    uint32_t queue = slot.queue.load(std::memory_order_relaxed);
    bool passed = old == 0 || segment->blocks[queue].retired.load(std::memory_order_relaxed) >= old;
    if (queue == owner.index() || passed) chosen = &slot;
    if (queue == owner.index() && !passed) break;
  }
  // All four in use by other queues: the scheduler's watchdog must do.
  if (chosen == nullptr) return;
  chosen->queue.store(owner.index(), std::memory_order_relaxed);
  chosen->until.store(until, std::memory_order_release);
  RingScheduler(waiter.index());
}

// ---- the thread ----

void* Agent::Main(void* agent) {
  static_cast<Agent*>(agent)->Run();
  return nullptr;
}

void Agent::Run() {
  int bell = agent_bell_.load(std::memory_order_acquire);
  TimePoint wake_at{};
  for (;;) {
    pollfd fds[2] = {{bell, POLLIN, 0}, {-1, POLLIN, 0}};
    {
      MutexLock lock(mutex_);
      fds[1].fd = server_.fd();
    }
    timespec timeout{};
    if (wake_at != kNever) {
      Duration left = wake_at - MonotonicClock::now();
      if (left < Duration::zero()) left = Duration::zero();
      timeout.tv_sec = left / std::chrono::seconds(1);
      timeout.tv_nsec = (left % std::chrono::seconds(1)).count();
    }
    ppoll(fds, 2, wake_at == kNever ? nullptr : &timeout, nullptr);
    // Before looking at anything, so that who rings after our look wakes us again.
    Silence(bell);
    {
      MutexLock lock(mutex_);
      if (shut_down() || type_ == kSchedulerAppManaged) {
        thread_running_ = false;
        break;
      }
      wake_at = Tick(MonotonicClock::now());
    }
    AttendQueues();
    ProcessSlices::Get().Apply();
  }
  ProcessSlices::Get().Apply();
  AttendQueues();  // what was held when the scheduler was stopped
}

TimePoint Agent::Tick(TimePoint now) {
  if (local_.running()) return local_.Decide(now);
  if (server_.connected() && !server_.Receive()) OpenControls();
  if (server_.connected()) return kNever;
  if (now >= server_.retry_at()) ConnectAndRegister();
  return server_.connected() ? kNever : server_.retry_at();
}

void Agent::AttendQueues() {
  // Of all of them first: a driver that is asked about one queue may wait for what is stopped on another.
  ForEachQueue([](XQueue& queue) { queue.ApplyLevels(); });
  ForEachQueue([](XQueue& queue) {
    queue.Attend();
    XQueueTable::FinishIfDrained(queue);
  });
}

// ---- the end of the process, and its copies ----

void Agent::Shutdown() {
  shut_down_.store(true, std::memory_order_seq_cst);
  {
    MutexLock lock(mutex_);
    if (!started_) return;
    StopScheduler();
  }
  AttendQueues();
  Wake();
}

void Agent::AfterForkInChild() {
  mutex_.ResetAfterFork();
  local_.ForgetAfterFork();
  ProcessSlices::Get().ResetAfterFork();
  XQueueTable::ResetAfterFork();
  ResetHwQueuesAfterFork();
  if (!started_) return;
  // Our copies of the parent's descriptors would keep its connection open after its end.
  server_.ForgetAfterFork();
  owned_.memfd.Reset();
  agent_bell_fd_.Reset();
  scheduler_bell_fd_.Reset();
  agent_bell_.store(-1, std::memory_order_relaxed);
  scheduler_bell_.store(-1, std::memory_order_relaxed);
  // Launches of this process must not count in the parent's blocks: put private memory in their place. Zeroed
  // flags make every queue unscheduled.
  void* own = mmap(owned_.mapping.get(), ipc::kSegmentSize, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (own == MAP_FAILED) XSCHED_WARN("a forked process still counts its launches with its parent's");
  owned_.mapping.Forget();
  segment_.store(nullptr, std::memory_order_relaxed);
  started_ = false;
  thread_running_ = false;
  type_ = kSchedulerAppManaged;
}

void Agent::InstallProcessHandlers() {
  static bool installed = false;  // under mutex_
  if (installed) return;
  installed = true;
  pthread_atfork(nullptr, nullptr, [] { Agent::Get().AfterForkInChild(); });
  // Registered late, so run early: before the driver's own end, which may wait for what our gates hold.
  atexit([] { Agent::Get().Shutdown(); });
}

}  // namespace xsched::preempt
