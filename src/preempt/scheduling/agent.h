// The process's link to whoever schedules its queues: xserver (server_link.h), a policy in this process
// (local_scheduler.h), or nobody (application-managed).
//
// Owns the shared-memory segment and one thread, which exists while a scheduler is in use, or while something
// is still to be given back: it opens gates, sets slices, notifies waiters, and connects anew when the server
// comes back. It never calls a driver, but to open gates that the host opens, and never takes a lock that is
// held around a driver's call: questions go to driver_caller.h. It never holds up a launch.
//
// Fail open: without a scheduler every gate is open, whatever stands in the shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/guarded_fd.h"
#include "base/mutex.h"
#include "ipc/segment.h"
#include "preempt/gates/gate_chain.h"
#include "preempt/queue/xqueue.h"
#include "preempt/scheduling/local_scheduler.h"
#include "preempt/scheduling/retry.h"
#include "preempt/scheduling/server_link.h"
#include "xsched/types.h"

namespace xsched::preempt {

class Agent {
 public:
  static Agent& Get();

  // Makes the segment and, on first use, starts the scheduler that the environment asks for. Waits for a
  // server's welcome, but for moments only. False: no memory.
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
  // A launch has found its queue scheduled: from now on a server that hangs must be found out. Lock-free.
  void SomethingIsTaken() {
    if (!watching_.load(std::memory_order_seq_cst)) StartWatching();
  }
  // Something could not be given back: the agent's thread tries until it is. Takes locks.
  void GiveBackLater();
  // Queue `waiter` waits until `owner` has retired `until` commands.
  void AddDependency(XQueue& waiter, XQueue& owner, uint64_t until);

  // Opens every gate and schedules nothing any more.
  void Shutdown();
  bool shut_down() const { return shut_down_.load(std::memory_order_acquire); }
  // Is a scheduler in charge? Otherwise gates are open, and words that a former scheduler still writes are
  // ignored.
  bool scheduled() const { return scheduled_.load(std::memory_order_acquire); }

 private:
  static void* Main(void* agent);
  void Run();
  // When to be called again; kNever: everything is given back.
  TimePoint GiveBack(TimePoint now);
  static XQueue::Left AttendQueues(GateChain::IfBusy if_busy);
  void AfterForkInChild();
  void StartWatching();
  void LoseDescriptors();

  // All of these: REQUIRES mutex_.
  void InstallProcessHandlers();
  bool StartThread();
  void UseScheduler(XSchedulerType type, XPolicyType policy);
  void AwaitWelcome(Duration at_most);
  void StopScheduler();
  void RegisterQueues();
  void LeaveServer();
  void OpenControls();
  bool AnythingTaken();
  void DecideLocally();
  void AfterSend(bool sent);
  bool DescriptorsAreOurs() const;
  TimePoint Tick(TimePoint now);
  TimePoint TickServer(TimePoint now);
  TimePoint TickLocal(TimePoint now);
  template <typename Visit>
  static void ForEachQueue(Visit&& visit);

  std::atomic<ipc::Segment*> segment_{nullptr};
  std::atomic<const GuardedFd*> scheduler_bell_{nullptr};  // eventfd: wakes the scheduler
  std::atomic<const GuardedFd*> agent_bell_{nullptr};      // eventfd: wakes the agent
  std::atomic<bool> shut_down_{false};
  std::atomic<bool> scheduled_{false};
  std::atomic<bool> watching_{false};  // the thread wakes now and then, since something is taken
  std::atomic<bool> lost_{false};      // the program has closed descriptors of ours

  Retry retry_;  // the thread's alone

  // Guards what follows. Queues' own locks may be taken while it is held, never the other way round.
  Mutex mutex_;
  Condition welcome_;  // the server has taken this process, or not
  ipc::OwnedSegment owned_;
  GuardedFd memfd_;
  GuardedFd scheduler_bell_fd_;
  GuardedFd agent_bell_fd_;
  bool started_ = false;
  bool thread_running_ = false;
  TimePoint watch_until_{};
  bool shared_ = false;  // a server has been given the segment: from then on it may write there at any time
  bool give_back_ = false;  // has been asked for since the thread last looked
  XSchedulerType type_ = kSchedulerAppManaged;
  ServerLink server_;
  LocalScheduler local_;
};

}  // namespace xsched::preempt
