// The state of the process, composed of its parts, and the only access to it. Never destroyed, because other
// threads of the program may launch until the end.
#pragma once

#include "base/no_destroy.h"
#include "preempt/queue/query_mutex.h"
#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/agent.h"
#include "preempt/scheduling/control_memory.h"
#include "preempt/scheduling/driver_caller.h"
#include "preempt/scheduling/memory_limit.h"
#include "preempt/scheduling/process_slices.h"

namespace xsched::preempt {

class Process final : XQueueTableOwner {
 public:
  constexpr Process(XQueueSlots& slots, UrgencySlots& urgency_slots)
      : queues(slots, *this,
               {&state, &agent, &queues, &driver, &slices, &hw_queues, &hw_commands, &MonotonicClock::now,
                &MonotonicClock::roughly_now}),
        urgencies(urgency_slots, queues, driver, state),
        driver(queues, urgencies, state),
        memory(queues, state),
        memory_limit(memory),
        agent(memory, memory_limit, queues, urgencies, slices, driver, state, thread, &MonotonicClock::now) {}

  // Starts the agent, on first use, with the scheduler that the environment asks for. False: no memory.
  bool StartAgent();
  XResult CreateQueue(const Ref<HwQueue>& hwq, XQueueOptions options, XQueueHandle* out);
  // Reports the queue's new hints to the scheduler and to the driver.
  void HintsChanged(XQueue& queue);
  void Suspend(XQueue& queue, bool suspended);
  // Queue `waiter` waits until `owner` has retired `until` commands.
  void AddDependency(XQueue& waiter, XQueue& owner, uint64_t until);

  ProcessState state;
  ProcessSlices slices;
  HwQueues hw_queues;
  HwCommands hw_commands;
  QueryMutex stream_queries;
  XQueueTable queues;
  Urgencies urgencies;
  DriverCaller driver;
  PosixAgentThread thread;
  ControlMemory memory;
  MemoryLimit memory_limit;
  Agent agent;

 private:
  ipc::ControlBlock* ResetBlock(uint32_t index) override { return memory.ResetBlock(index); }
  SharedMemory ControlBlocks() const override { return memory.blocks(); }
  void QueueCreated(XQueue& queue) override;
  void QueueDestroyed(XQueue& queue) override;

  void ResetAfterFork();
};

extern NoDestroy<Process> the_process;
inline Process& ThisProcess() { return *the_process; }

}  // namespace xsched::preempt
