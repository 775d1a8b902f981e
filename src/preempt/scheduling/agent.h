// The process's link to whoever schedules its queues: xserver (server_client.h), a policy in this process
// (local_client.h), or nobody (application-managed).
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
#include "preempt/gates/signals.h"
#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/local_client.h"
#include "preempt/scheduling/process_slices.h"
#include "preempt/scheduling/retry.h"
#include "preempt/scheduling/server_client.h"
#include "xsched/types.h"

namespace xsched::preempt {

class Agent final : public Signals, ServerListener {
 public:
  // What a program's environment asks for.
  struct Config {
    XSchedulerType scheduler = kSchedulerAppManaged;
    XPolicyType policy = kPolicyHighestPriorityFirst;
    Timeslice timeslice_us = 0;  // 0: not given
  };

  constexpr Agent(XQueueTable& queues, Urgencies& urgencies, ProcessSlices& slices, DriverRequests& driver,
                  ProcessState& state)
      : queues_(queues), urgencies_(urgencies), slices_(slices), driver_(driver), state_(state) {}

  // On first use makes the segment and starts the scheduler that `config` asks for. Waits for a server's
  // welcome, but for moments only. False: no memory.
  bool Start(const Config& config);
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
  SharedMemory ControlBlocks() const;

  void RingScheduler(uint32_t index) override;
  void Wake() override;
  void SomethingIsTaken() override {
    if (!watching_.load(std::memory_order_seq_cst)) StartWatching();
  }
  void GiveBackLater() override;
  // Queue `waiter` waits until `owner` has retired `until` commands.
  void AddDependency(XQueue& waiter, XQueue& owner, uint64_t until);

  // Opens every gate and schedules nothing any more.
  void Shutdown();
  // In a forked child, which begins unscheduled.
  void ResetAfterFork();

 private:
  static void* Main(void* agent);
  void Run();
  // When to be called again; kNever: everything is given back.
  TimePoint GiveBack(TimePoint now);
  XQueue::Left AttendQueues(IfBusy if_busy);
  void StartWatching();
  void LoseDescriptors();

  template <typename Change>
  bool Tell(Change&& change);

  // All of these: REQUIRES mutex_.
  bool StartThread();
  void UseScheduler(XSchedulerType type, XPolicyType policy);
  void AwaitWelcome(Duration at_most);
  void StopScheduler();
  void RegisterQueues();
  void LeaveServer();
  void OpenControls();
  bool AnythingTaken();
  void AfterChange(bool said);
  bool Ending() const { return state_.shut_down() || client_ == nullptr; }
  bool DescriptorsAreOurs() const;
  TimePoint Tick(TimePoint now);
  TimePoint ServeClient(TimePoint now);
  template <typename Visit>
  void ForEachQueue(Visit&& visit);
  void OnSlice(XDevice device, uint64_t slice_us) override;
  void OnHints(XQueueHandle queue, const sched::Hints& hints) override;

  XQueueTable& queues_;
  Urgencies& urgencies_;
  ProcessSlices& slices_;
  DriverRequests& driver_;
  ProcessState& state_;

  std::atomic<ipc::Segment*> segment_{nullptr};
  std::atomic<const GuardedFd*> scheduler_bell_{nullptr};  // eventfd: wakes the scheduler
  std::atomic<const GuardedFd*> agent_bell_{nullptr};      // eventfd: wakes the agent
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
  Timeslice timeslice_us_ = 0;
  ServerClient server_{*this};
  LocalClient local_{queues_};
  SchedulerClient* client_ = nullptr;  // one of these; null: the program schedules by itself
};

}  // namespace xsched::preempt
