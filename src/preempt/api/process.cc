#include "preempt/api/process.h"

#include <pthread.h>
#include <stdlib.h>

#include "preempt/api/settings.h"

namespace xsched::preempt {
namespace {

// Beside the process: without a pointer in it, it takes no room in the library's file.
constinit NoDestroy<XQueueSlots> slots;

}  // namespace

constinit NoDestroy<Process> the_process{*slots};

bool Process::StartAgent() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    pthread_atfork(nullptr, nullptr, [] { ThisProcess().ResetAfterFork(); });
    // Registered late, so run early: before the driver's own end, which may wait for what our gates hold.
    atexit([] { ThisProcess().agent.Shutdown(); });
  });
  const Settings& settings = GetSettings();
  return agent.Start({settings.scheduler, settings.policy, settings.timeslice_us});
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
  urgencies.RequestAll(Urgencies::Wait::kBriefly);
}

void Process::Suspend(XQueue& queue, bool suspended) {
  queue.Suspend(suspended);
  urgencies.RequestAll(Urgencies::Wait::kBriefly);
  agent.AbsentChanged(queue);
}

void Process::QueueCreated(XQueue& queue) {
  agent.QueueCreated(queue);
  urgencies.QueueCameOrGoes(queue);
}

void Process::QueueDestroyed(XQueue& queue) {
  agent.QueueDestroyed(queue);
  urgencies.QueueCameOrGoes(queue);
}

void Process::ResetAfterFork() {
  state.ResetAfterFork();
  slices.ResetAfterFork();
  driver.ResetAfterFork();
  queues.ResetAfterFork();
  urgencies.ResetAfterFork();
  ResetHwQueuesAfterFork();
  agent.ResetAfterFork();
}

}  // namespace xsched::preempt
