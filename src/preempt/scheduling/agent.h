// Connects the process to the scheduler of its queues: xserver (server_client.h), a policy in this process
// (local_client.h), or none (application-managed).
//
// Its thread (agent_thread.h) exists while a scheduler is in use, or while something must still be given
// back. It attends to the queues (attendant.h), checks whether the scheduler is alive while something is
// taken (gates/taken_watch.h), and connects anew when the server is back. It calls a driver only to open host
// gates, where that never blocks, and takes no lock that is held during a driver's call: questions, and other
// host gates, go to driver_caller.h. It never delays a launch.
//
// Fail open: without a scheduler every gate is open, whatever the shared memory contains.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/mutex.h"
#include "ipc/job.h"
#include "preempt/gates/signals.h"
#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/agent_thread.h"
#include "preempt/scheduling/attendant.h"
#include "preempt/scheduling/control_memory.h"
#include "preempt/scheduling/local_client.h"
#include "preempt/scheduling/memory_limit.h"
#include "preempt/scheduling/process_slices.h"
#include "preempt/scheduling/server_client.h"
#include "sched/core/policy_setting.h"
#include "xsched/types.h"

namespace xsched::preempt {

class Agent final : public Signals, AgentThread::Work, ServerListener {
 public:
  // The settings from a program's environment.
  struct Config {
    XSchedulerType scheduler = kSchedulerAppManaged;
    sched::PolicySetting policy = *sched::FindPolicy(sched::kDefaultPolicy);
    Timeslice timeslice_us = 0;  // 0: not given
    size_t at_a_time = 0;        // likewise
  };

  constexpr Agent(ControlMemory& memory, MemoryLimit& memory_limit, XQueueTable& queues, Urgencies& urgencies,
                  ProcessSlices& slices, DriverRequests& driver, ProcessState& state, AgentThread& thread,
                  Clock clock)
      : memory_(memory),
        memory_limit_(memory_limit),
        queues_(queues),
        urgencies_(urgencies),
        slices_(slices),
        driver_(driver),
        state_(state),
        thread_(thread),
        clock_(clock),
        attendant_(queues, urgencies, slices, driver) {}

  // On first use makes the segment and starts the scheduler that `config` names. Waits for a server's
  // welcome, but not long. False: no memory.
  bool Start(const Config& config);

  void QueueCreated(XQueue& queue);
  void QueueDestroyed(XQueue& queue);
  void HintsChanged(XQueue& queue);
  void ConfigChanged(XQueue& queue);
  void AbsentChanged(XQueue& queue);
  void SetTimeslice(Timeslice timeslice_us);
  void SetAtATime(size_t queues);
  // The process works together with others that say the same bytes. The scheduler is told now, or when there
  // is one.
  void JoinJob(std::span<const char> id);
  XResult SetScheduler(XSchedulerType type, XPolicyType policy);

  void RingScheduler(uint32_t index) override { memory_.RingScheduler(index); }
  void Wake() override { memory_.RingAgent(); }
  void SomethingIsTaken() override {
    if (state_.taken_watch.Begin()) Wake();
  }
  bool GiveBackLater() override EXCLUDES(mutex_);

  // Opens every gate and stops scheduling.
  void Shutdown();
  // In a forked child, which begins unscheduled.
  void ResetAfterFork();

  // ---- the thread ----
  Sources WhatToAwait() override;
  std::optional<TimePoint> Attend(TimePoint now) override;

 private:
  template <typename Change>
  bool Notify(Change&& change) EXCLUDES(mutex_);

  bool StartThread() REQUIRES(mutex_);
  void UseScheduler(XSchedulerType type, const sched::PolicySetting& policy) REQUIRES(mutex_);
  void AwaitWelcome(TimePoint deadline) REQUIRES(mutex_);
  void StopScheduler() REQUIRES(mutex_);
  void RegisterQueues() REQUIRES(mutex_);
  void LeaveServer() REQUIRES(mutex_);
  bool AnythingTaken() REQUIRES(mutex_) { return slices_.AnyTaken() || memory_.AnythingTaken(); }
  void AfterChange(bool said) REQUIRES(mutex_);
  bool Ending() const REQUIRES(mutex_) { return state_.shut_down() || client_ == nullptr; }
  bool DescriptorsAreOurs() REQUIRES(mutex_);
  TimePoint Tick(TimePoint now) REQUIRES(mutex_);
  TimePoint ServeClient(TimePoint now) REQUIRES(mutex_);
  // Called by the clients, and so with mutex_ held.
  void OnSlice(XDevice device, uint64_t slice_us) override;
  void OnHints(const ipc::QueueHints& message) override;
  void OnConfig(XQueueHandle queue, uint32_t level, const LaunchConfig& config) override;
  void OnTenantMemory(int memfd, uint32_t slot) override { memory_limit_.JoinTenant(memfd, slot); }
  void ReportConfigs() REQUIRES(mutex_);
  // The queue with this handle; null: it is gone. Valid while the lock is held: the slot is not reused before
  // the agent is notified of the queue's end.
  XQueue* QueueOf(XQueueHandle handle) REQUIRES(mutex_);

  ControlMemory& memory_;  // created under mutex_
  MemoryLimit& memory_limit_;
  XQueueTable& queues_;
  Urgencies& urgencies_;
  ProcessSlices& slices_;
  DriverRequests& driver_;
  ProcessState& state_;
  AgentThread& thread_;
  const Clock clock_;

  Attendant attendant_;

  Mutex<LockRank::kAgent> mutex_;
  Condition welcome_;  // the server has accepted or rejected this process
  bool started_ GUARDED_BY(mutex_) = false;
  TimePoint welcome_at_start_until_ GUARDED_BY(mutex_){};
  bool thread_running_ GUARDED_BY(mutex_) = false;
  // A server has the segment: from then on it may write there at any time.
  bool shared_ GUARDED_BY(mutex_) = false;
  bool give_back_ GUARDED_BY(mutex_) = false;           // requested since the thread last checked
  bool configs_unreported_ GUARDED_BY(mutex_) = false;  // of queues that a tool has changed
  // What the program asks of all schedulers, also of those to come; 0: nothing.
  Timeslice timeslice_us_ GUARDED_BY(mutex_) = 0;
  size_t at_a_time_ GUARDED_BY(mutex_) = 0;
  std::array<uint64_t, ipc::kMostJobs> jobs_ GUARDED_BY(mutex_) = {};  // that the process has joined
  size_t job_count_ GUARDED_BY(mutex_) = 0;
  ServerClient server_ GUARDED_BY(mutex_){*this};
  LocalClient local_ GUARDED_BY(mutex_){queues_};
  // One of these; null: the program schedules by itself.
  SchedulerClient* client_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace xsched::preempt
