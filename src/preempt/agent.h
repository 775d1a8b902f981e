// The process's link to whoever schedules its queues: xserver (server_link.h), a policy in this process
// (local_scheduler.h), or nobody (application-managed).
//
// Owns the shared-memory segment and one thread, which exists while a scheduler is in use: it opens gates,
// answers queries, and connects anew when the server comes back. It never holds up a launch.
//
// Fail open: without a scheduler every gate is open.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "ipc/segment.h"
#include "preempt/local_scheduler.h"
#include "preempt/server_link.h"
#include "xsched/types.h"

namespace xsched::preempt {

class XQueue;

class Agent {
 public:
  static Agent& Get();

  // Makes the segment and, on first use, starts the scheduler that the environment asks for. False: no
  // memory.
  bool Start();
  // The control block of queue slot `index`, reset for a new queue. REQUIRES: Start succeeded.
  ipc::ControlBlock* ResetBlock(uint32_t index);

  void QueueCreated(XQueue& queue);
  void QueueDestroyed(XQueue& queue);
  void HintsChanged(XQueue& queue);
  void ConfigChanged(XQueue& queue);
  void AbsentChanged(XQueue& queue);
  XResult SetTimeslice(Timeslice timeslice_us);
  XResult SetScheduler(XSchedulerType type, XPolicyType policy);

  // The mapping that holds the control blocks. REQUIRES: Start succeeded.
  void SharedMemory(void** memory, size_t* size) const;

  // Tells the scheduler to look at queue `index`. Lock-free, async-signal-safe.
  void RingScheduler(uint32_t index);
  // Tells the agent's thread to look at the queues. Lock-free, async-signal-safe.
  void Wake();
  // Queue `waiter` waits until `owner` has retired `until` commands.
  void AddDependency(XQueue& waiter, XQueue& owner, uint64_t until);

  // Opens every gate and schedules nothing any more.
  void Shutdown();
  bool shut_down() const { return shut_down_.load(std::memory_order_acquire); }

 private:
  static void* Main(void* agent);
  void Run();
  void AttendQueues();
  void AfterForkInChild();

  // All of these: REQUIRES mutex_.
  void InstallProcessHandlers();
  bool StartThread();
  void UseScheduler(XSchedulerType type, XPolicyType policy);
  void StopScheduler();
  void ConnectAndRegister();
  void OpenControls();
  void DecideLocally();
  void AfterSend(bool sent);
  TimePoint Tick(TimePoint now);
  template <typename Visit>
  static void ForEachQueue(Visit&& visit);

  std::atomic<ipc::Segment*> segment_{nullptr};
  std::atomic<int> scheduler_bell_{-1};  // eventfd: wakes the scheduler
  std::atomic<int> agent_bell_{-1};      // eventfd: wakes the agent
  std::atomic<bool> shut_down_{false};

  // Guards what follows. Queues' own locks may be taken while it is held, never the other way round.
  Mutex mutex_;
  ipc::OwnedSegment owned_;
  UniqueFd scheduler_bell_fd_;
  UniqueFd agent_bell_fd_;
  bool started_ = false;
  bool thread_running_ = false;
  XSchedulerType type_ = kSchedulerAppManaged;
  ServerLink server_;
  LocalScheduler local_;
};

}  // namespace xsched::preempt
