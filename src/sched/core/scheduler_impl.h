// What a scheduler consists of. Its functions are in three files: what happens to queues, processes and
// tenants (scheduler.cc), what queues report of their progress (progress.cc), and a decision (decision.cc;
// what the policies are asked in it, ask_policies.cc).
#pragma once

#include "base/array.h"
#include "base/pointer_map.h"
#include "sched/core/controls.h"
#include "sched/core/former_rivals.h"
#include "sched/core/long_held.h"
#include "sched/core/policy_setting.h"
#include "sched/core/queue_record.h"
#include "sched/core/scheduler.h"
#include "sched/core/tenants.h"
#include "sched/core/turns.h"
#include "sched/core/waits.h"
#include "sched/core/windows.h"

namespace xsched::sched {

struct Scheduler::Impl {
  SchedulerConfig config;
  PolicySetting policy = *FindPolicy(kDefaultPolicy);
  PointerMap<QueueRecord> queues;
  Turns turns;  // outlives the devices
  Tenants tenants;
  Array<DeviceRecord*> devices;
  Waits waits{queues, devices};
  Windows windows{devices, turns};
  LongHeld long_held{devices};
  Controls controls{config, long_held};
  FormerRivals former_rivals;
  TimePoint turns_at = kNever;
  bool refreshed = false;  // the time slices of a device, in the current decision
  TimePoint decide_at = kNever;

  QueueRecord* Find(QueueId id) const { return queues.Find(static_cast<uint64_t>(id)); }
  DeviceRecord* Device(DeviceId id, TimePoint now);
  void DirtyAll();
  void MarkOnOthers(ProcessRecord& process);
  void SlicesChanged(ProcessId process) const;
  template <typename Is>
  static void HasNewShare(DeviceRecord& device, Is&& is);

  void Retire(QueueRecord& queue, uint64_t retired, TimePoint at, TimePoint now);
  void Resume(QueueRecord& queue, TimePoint now);
  static void LaunchesChanged(QueueRecord& queue);
  static void EndRequest(QueueRecord& queue, TimePoint since, TimePoint now);
  static void Moved(QueueRecord& queue, TimePoint at, TimePoint now);
  // True if it matters to a policy when a queue's work came.
  bool PolicyReadsRequests() const {
    return policy.Reads(&HintsRead::deadline) || policy.Reads(&HintsRead::laxity) ||
           policy.Reads(&HintsRead::latency_target);
  }

  bool IsAnythingDue(TimePoint now) const;
  void Forgive(TimePoint now);
  bool ChooseDevices(TimePoint now);
  bool MayOnlyAsk(const DeviceRecord& device) const;
  void AskForProgress(TimePoint now, ControlSink& sink);
  void DecideDue(TimePoint now, ControlSink& sink);
  template <typename Step>
  void ForEachDue(Step&& step) const;
  void RefreshAllRivals();
  void ObserveDue(TimePoint now, ControlSink& sink);
  void Observe(DeviceRecord& device, TimePoint now, ControlSink& sink);
  void RefreshSlices(DeviceRecord& device, TimePoint now, ControlSink& sink);
  void FollowLeaders(TimePoint now, ControlSink& sink);
  void ChooseQueues(TimePoint now);
  bool PoliciesDecide(const DeviceRecord& device) const;
  void ChooseProcesses(TimePoint now, ControlSink& sink);
  void Report(TimePoint now, ControlSink& sink);
  void ForgetEmptyDevices();
  void RemoveDevice(size_t index);

  void AskPolicies(TimePoint now) const;
  void FindLimits(TimePoint now) const;
  void FindLimits(DeviceRecord& device, TimePoint now) const;
  void AskWhenLimitsEnd(TimePoint now) const;
  DeviceView DeviceViewOf(DeviceRecord& device, size_t layer, TimePoint now, Priority highest_of_all) const;
  Priority HighestOfAll(Granularity by) const;
};

}  // namespace xsched::sched
