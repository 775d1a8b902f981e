// The thread that asks the driver. Any call into a driver may block for as long as the device works, or for
// ever: so what gives back (the agent) never makes one, and leaves them to this thread. Nothing waits for it;
// when it hangs, queues are asked no more, and the scheduler goes by what devices report by themselves.
//
// One per process, started when it is first needed. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "ipc/control_block.h"
#include "preempt/queue/urgencies.h"

namespace xsched::preempt {

class DriverCaller final : public DriverRequests {
 public:
  constexpr DriverCaller(XQueueTable& queues, Urgencies& urgencies, const ProcessState& process)
      : queues_(queues), urgencies_(urgencies), process_(process) {}

  // False: there is no such thread, and none can be started.
  bool Request(uint32_t index, Work work) override;
  void AwaitUntil(TimePoint deadline) override;

  void ResetAfterFork();

 private:
  static void* Main(void* self);
  void Run();
  bool Do(uint32_t index, uint32_t work);

  XQueueTable& queues_;
  Urgencies& urgencies_;
  const ProcessState& process_;
  std::atomic<uint32_t> work_[ipc::kMaxQueues]{};  // by slot

  Mutex mutex_;  // never held around a call of a driver
  Condition changed_;
  bool running_ = false;
  bool requested_ = false;
  uint64_t begun_ = 0;  // rounds over all queues
  uint64_t done_ = 0;
};

}  // namespace xsched::preempt
