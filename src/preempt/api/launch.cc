#include "preempt/api/launch.h"

#include "preempt/api/settings.h"
#include "preempt/queue/given_work.h"
#include "preempt/queue/xqueue_table.h"
#include "preempt/scheduling/agent.h"

namespace xsched::preempt {
namespace {

thread_local int depth = 0;

}  // namespace

bool InsideXSched() { return depth != 0; }
void ReentrancyGuard::Enter() { ++depth; }
void ReentrancyGuard::Leave() { --depth; }

XQueue* FindXQueue(XPlatform platform, uint64_t key) { return XQueueTable::Find(platform, key); }

bool AutoXQueueEnabled() { return GetSettings().auto_xqueue && !Agent::Get().shut_down(); }

XResult AutoXQueueCreate(HwQueueHandle handle) {
  Ref<HwQueue> hwq = HwQueues().Get(handle);
  if (!hwq) return kXSchedErrorNotFound;
  const Settings& settings = GetSettings();
  XQueueOptions options;
  // A program asked for by name cannot be asked what its platform has: take the best there is up to the
  // level.
  options.level = settings.level < hwq->ops.max_level ? settings.level : hwq->ops.max_level;
  options.pausable = false;
  options.config = {settings.threshold, settings.batch_size};
  options.hints = settings.hints;
  XQueueHandle xqueue = 0;
  return XQueueTable::Create(hwq, options, &xqueue);
}

uint64_t LaunchBegin(XQueue* queue) { return queue->LaunchBegin(); }
void LaunchEnd(XQueue* queue, uint64_t number, bool launched) { queue->LaunchEnd(number, launched); }
bool NoLaunchUnderWay(XQueue* queue) { return queue->Settled() == queue->submitted(); }
uint64_t SubmittedNow(XQueue* queue) { return queue->Settled(); }
void RetiredUpTo(XQueue* queue, uint64_t number) { queue->RetiredUpTo(number); }

bool TracksDependencies(XQueue* queue) { return queue->block().flags.load(std::memory_order_acquire) != 0; }

void AddDependency(XQueue* waiter, XQueue* owner, uint64_t until) {
  if (waiter != owner) Agent::Get().AddDependency(*waiter, *owner, until);
}

void DestroyWhenDrained(XPlatform platform, uint64_t key) {
  if (XQueue* queue = XQueueTable::Find(platform, key)) {
    XQueueTable::DestroyWhenDrained(queue);
  } else if (HwQueueHandle hwq = FindHwQueue(platform, key)) {
    UnregisterHwQueue(hwq);
  }
}

void Barrier::ForceAllOpen(bool open) { XQueueTable::ForceAllOpen(open); }

void SuspensionLift::Lift(bool lift) { XQueueTable::LiftSuspensions(lift); }

bool AnyMayBeHeld() { return XQueueTable::AnyMayBeHeld(); }

bool AwaitGiven(uint64_t context, Duration patience) {
  GivenWork given(context);
  return given.Await(patience) && !given.of_several_classes();
}

void OpenAllGatesForGood() { Agent::Get().Shutdown(); }

}  // namespace xsched::preempt
