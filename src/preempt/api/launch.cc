#include "preempt/api/launch.h"

#include "preempt/api/process.h"
#include "preempt/api/settings.h"
#include "preempt/queue/given_work.h"

namespace xsched::preempt {

constinit thread_local XQueue* last_found __attribute__((tls_model("initial-exec"))) = nullptr;

XQueue* LookUpXQueue(uint64_t name) {
  XQueue* const found = ThisProcess().queues.FindByName(name);
  if (found != nullptr) last_found = found;
  return found;
}

bool AutoXQueueEnabled() { return GetSettings().auto_xqueue && !ThisProcess().state.shut_down(); }

XResult AutoXQueueCreate(HwQueueHandle handle) {
  Ref<HwQueue> hwq = ThisProcess().hw_queues.Get(handle);
  if (!hwq) return kXSchedErrorNotFound;
  const Settings& settings = GetSettings();
  XQueueOptions options;
  // The environment does not know what the platform supports. So the level is a limit: use the best one up to
  // it.
  options.level = settings.level < hwq->ops.max_level ? settings.level : hwq->ops.max_level;
  options.pausable = false;
  options.config = {settings.threshold, settings.batch_size};
  options.hints = settings.hints;
  XQueueHandle xqueue = 0;
  return ThisProcess().CreateQueue(hwq, options, &xqueue);
}

bool NoLaunchUnderWay(XQueue* queue) { return queue->issued() == queue->submitted(); }
uint64_t SubmittedNow(XQueue* queue) { return queue->issued(); }
void RetiredUpTo(XQueue* queue, uint64_t number) { queue->RetiredUpTo(number); }

bool AnyTracksDependencies() { return ThisProcess().queues.AnyIsTracked(); }

void AddDependency(XQueue* waiter, XQueue* owner, uint64_t until) {
  if (waiter != owner) ThisProcess().AddDependency(*waiter, *owner, until);
}

void DriverPriorityChanged(XQueue* queue) { ThisProcess().urgencies.QueueChanged(*queue); }

void DestroyWhenDrained(XPlatform platform, uint64_t key) {
  if (XQueue* queue = ThisProcess().queues.Find(platform, key)) {
    ThisProcess().queues.DestroyWhenDrained(queue);
  } else if (HwQueueHandle hwq = ThisProcess().hw_queues.Find(platform, key)) {
    ThisProcess().hw_queues.Unregister(hwq);
  }
}

void ForgetQueue(XPlatform platform, uint64_t key) {
  if (XQueue* queue = ThisProcess().queues.Find(platform, key)) {
    ThisProcess().queues.Forget(queue);
  } else if (HwQueueHandle hwq = ThisProcess().hw_queues.Find(platform, key)) {
    ThisProcess().hw_queues.Unregister(hwq);
  }
}

void ContextGoes(uint64_t context) { ThisProcess().queues.ContextGoes(context); }
void ContextGone(uint64_t context) { ThisProcess().queues.ContextGone(context); }
void ContextStays(uint64_t context) { ThisProcess().queues.ContextStays(context); }

void Barrier::ForceAllOpen(bool open) { ThisProcess().queues.ForceAllOpen(open); }

void SuspensionLift::Lift(bool lift) { ThisProcess().queues.LiftSuspensions(lift); }

bool AnyMayBeHeld() { return ThisProcess().queues.AnyMayBeHeld(); }
bool AnyLaunchMayWait() { return ThisProcess().queues.AnyLaunchMayWait(); }

bool OfSeveralClasses(const AwaitedQueues& queues) {
  const NoCancellation with_pins;
  return GivenWork(ThisProcess().queues, queues, {}).of_several_classes();
}

void AwaitGiven(const AwaitedQueues& queues, Duration patience) {
  const NoCancellation with_pins;
  GivenWork(ThisProcess().queues, queues, {}).Await(patience, ThisProcess().slices);
}

void AwaitNotHeld(const AwaitedQueues& queues, Duration patience) {
  const NoCancellation with_pins;
  GivenWork(ThisProcess().queues, queues, {}).AwaitNotHeld(patience);
}

}  // namespace xsched::preempt
