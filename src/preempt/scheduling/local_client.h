// Runs the scheduler in this process, on the agent's thread, for this process's queues only.
#pragma once

#include <memory>

#include "base/clock.h"
#include "ipc/control_block.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/scheduler_client.h"
#include "sched/core/scheduler.h"

namespace xsched::preempt {

class LocalClient final : public SchedulerClient, sched::ControlSink {
 public:
  explicit constexpr LocalClient(const XQueueTable& queues) : queues_(queues) {}

  // `shared`: a server has the segment, and may write there at any time. False: out of memory.
  bool Start(ipc::Segment& segment, const sched::PolicySetting& policy, bool shared);
  void Stop() override;
  bool connected() const override { return scheduler_ != nullptr; }

  bool QueueCreated(const XQueue& queue) override;
  bool QueueDestroyed(const XQueue& queue) override;
  bool Hints(const XQueue& queue) override;
  bool Config(const XQueue&) override { return true; }  // policies do not look at it
  bool Absent(const XQueue& queue) override;
  bool Timeslice(int64_t timeslice_us) override;
  bool AtATime(size_t queues) override;
  bool JoinJob(uint64_t) override { return true; }  // it knows no other process
  // On the caller's thread, so that a queue that may be held from now on is bounded before its next launch.
  // The agent's thread does the rest.
  bool Commit(TimePoint now) override;

  int fd() const override { return -1; }
  short events() const override { return 0; }
  // Observes the queues that rang, and decides.
  News Serve(TimePoint now) override;
  bool Beat(bool, TimePoint) override { return true; }
  void ConnectIfDue(TimePoint) override {}
  TimePoint wake_at() const override { return wake_at_; }

  void ForgetAfterFork() { (void)scheduler_.release(); }

 private:
  void SetControl(sched::QueueId queue, const sched::Control& control) override;
  void Query(sched::QueueId queue) override;
  // Slices divide a device between processes, and here is only one.
  void SetSlice(sched::ProcessId, sched::DeviceId, Duration) override {}
  void Decide(TimePoint now);
  void ObserveDirty(TimePoint now);
  void RestoreControls();
  void Observe(uint32_t index, TimePoint now);

  const XQueueTable& queues_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  ipc::Segment* segment_ = nullptr;
  bool shared_ = false;
  bool newly_tracked_ = false;  // a queue is tracked since this decision, and is marked as dirty
  TimePoint wake_at_ = kNever;
};

}  // namespace xsched::preempt
