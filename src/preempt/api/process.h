// What there is once per process, made of the parts below, and the only way to it. Never destroyed: other
// threads of the program may launch until the very end.
#pragma once

#include "base/no_destroy.h"
#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/agent.h"
#include "preempt/scheduling/driver_caller.h"
#include "preempt/scheduling/process_slices.h"

namespace xsched::preempt {

class Process final : XQueueTableOwner {
 public:
  explicit constexpr Process(XQueueSlots& slots)
      : queues(slots, *this, {&state, &agent, &queues, &driver, &slices, &MonotonicClock::now}),
        urgencies(queues, driver, state),
        driver(queues, urgencies, state),
        agent(queues, urgencies, slices, driver, state) {}

  // Starts the agent, on first use, with the scheduler that the environment asks for. False: no memory.
  bool StartAgent();
  XResult CreateQueue(const Ref<HwQueue>& hwq, XQueueOptions options, XQueueHandle* out);
  // Others are to know of the queue's new hints.
  void HintsChanged(XQueue& queue);
  void Suspend(XQueue& queue, bool suspended);

  ProcessState state;
  ProcessSlices slices;
  XQueueTable queues;
  Urgencies urgencies;
  DriverCaller driver;
  Agent agent;

 private:
  ipc::ControlBlock* ResetBlock(uint32_t index) override { return agent.ResetBlock(index); }
  SharedMemory ControlBlocks() const override { return agent.ControlBlocks(); }
  void QueueCreated(XQueue& queue) override;
  void QueueDestroyed(XQueue& queue) override;

  void ResetAfterFork();
};

extern NoDestroy<Process> the_process;
inline Process& ThisProcess() { return *the_process; }

}  // namespace xsched::preempt
