#include "preempt/api/process.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fork_handler.h"
#include "base/no_cancellation.h"
#include "preempt/api/later_runtime.h"
#include "preempt/api/memory.h"
#include "preempt/api/settings.h"

namespace xsched::preempt {
namespace {

// Separate from the process: they contain no pointers, so they take no room in the library's file.
constinit NoDestroy<XQueueSlots> slots;
constinit NoDestroy<UrgencySlots> urgency_slots;

void ShutDownAtExit() {
  atexit([] { ThisProcess().agent.Shutdown(); });
}

}  // namespace

constinit NoDestroy<Process> the_process{*slots, *urgency_slots};

void ShutDownBeforeLaterRuntime() { ShutDownAtExit(); }

bool Process::StartAgent() {
  const NoCancellation with_locks;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    static constinit ForkHandler handler = {[] { ThisProcess().ResetAfterFork(); }};
    handler.Install();
    // Registered late, so it runs early: before the driver's own exit handler, which may wait for commands
    // behind our gates.
    ShutDownAtExit();
  });
  const Settings& settings = GetSettings();
  if (!agent.Start({settings.scheduler, settings.policy, settings.timeslice_us, settings.at_a_time}))
    return false;
  ReportMemory();
  return true;
}

XResult Process::CreateQueue(const Ref<HwQueue>& hwq, XQueueOptions options, XQueueHandle* out) {
  if (options.level > hwq->ops.max_level) return kXSchedErrorNotSupported;
  if (!StartAgent()) return kXSchedErrorUnknown;
  options.host_gate_latency = GetSettings().latency;
  options.device_gate_latency = GetSettings().gate_latency;
  return queues.Create(hwq, options, out);
}

void Process::HintsChanged(XQueue& queue) {
  urgencies.Changed();
  agent.HintsChanged(queue);
  urgencies.RequestAll(Urgencies::Wait::kShortly);
}

void Process::Suspend(XQueue& queue, bool suspended) {
  queue.Suspend(suspended);
  urgencies.RequestAll(Urgencies::Wait::kShortly);
  agent.AbsentChanged(queue);
}

void Process::AddDependency(XQueue& waiter, XQueue& owner, uint64_t until) {
  if (memory.AddWait(waiter, owner, until)) memory.RingScheduler(waiter.index());
}

void Process::QueueCreated(XQueue& queue) {
  agent.QueueCreated(queue);
  urgencies.QueueChanged(queue);
}

void Process::QueueDestroyed(XQueue& queue) {
  agent.QueueDestroyed(queue);
  urgencies.QueueChanged(queue);
}

void Process::ResetAfterFork() {
  state.ResetAfterFork();
  slices.ResetAfterFork();
  driver.ResetAfterFork();
  queues.ResetAfterFork();
  urgencies.ResetAfterFork();
  hw_queues.ResetAfterFork();
  hw_commands.ResetAfterFork();
  agent.ResetAfterFork();
}

}  // namespace xsched::preempt
