// The scheduler of design, run by the agent's thread for this process's queues alone. Not thread-safe: the
// agent locks.
#pragma once

#include <memory>

#include "base/clock.h"
#include "ipc/control_block.h"
#include "sched/core/scheduler.h"

namespace xsched::preempt {

class XQueue;
class XQueueTable;

class LocalScheduler final : sched::ControlSink {
 public:
  explicit constexpr LocalScheduler(const XQueueTable& queues) : queues_(queues) {}

  // False: out of memory.
  bool Start(ipc::Segment& segment, const sched::Policy& policy);
  void Stop();
  bool running() const { return scheduler_ != nullptr; }

  void QueueCreated(const XQueue& queue);
  void QueueDestroyed(const XQueue& queue);
  void Hints(const XQueue& queue);
  void Absent(const XQueue& queue);
  void Timeslice(Duration timeslice);

  // Looks at the queues that rang, and decides. Returns when to be called again.
  TimePoint Decide(TimePoint now);
  // Puts right what somebody else has written to the control blocks, such as a server that hung and goes on
  // after the process has left it.
  void RestoreControls();
  void ForgetAfterFork() { (void)scheduler_.release(); }

 private:
  void SetControl(sched::QueueId queue, const sched::Control& control) override;
  void Query(sched::QueueId queue) override;
  // Slices divide a device between processes; here is but one.
  void SetSlice(sched::ProcessId, sched::DeviceId, Duration) override {}
  void Observe(uint32_t index, TimePoint now);

  const XQueueTable& queues_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  ipc::Segment* segment_ = nullptr;
};

}  // namespace xsched::preempt
