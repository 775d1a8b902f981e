#include "preempt/queue/xqueue_table.h"

#include <unistd.h>

#include <utility>

#include "base/handle.h"
#include "base/log.h"
#include "base/no_cancellation.h"
#include "base/pci_address.h"

namespace xsched::preempt {
namespace {

constexpr uint8_t kHandleKind = 1;

// So many free slots are not reused yet.
constexpr uint32_t kResting = 64;

// 100 ms, if need be.
constexpr int kFinishTries = 20;
constexpr useconds_t kFinishRetryUs = 5000;

// False: it is not done.
template <typename Done>
bool AwaitForASecond(Done&& done) {
  const TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(1);
  while (!done()) {
    if (MonotonicClock::now() >= deadline) return false;
    usleep(100);
  }
  return true;
}

// A hard stop of a process stops all parts of a divided device.
bool StopTogether(const XQueue& a, const XQueue& b) {
  return WholeDevice(a.hwq().device) == WholeDevice(b.hwq().device);
}

}  // namespace

uint32_t XQueueTable::FindFreeSlot() {
  slots_in_turn_ = std::clamp(taken_slots_ + kResting, slots_in_turn_, ipc::kMaxQueues);
  for (uint32_t i = 0; i < ipc::kMaxQueues; ++i) {
    const uint32_t index = i < slots_in_turn_ ? (next_slot_ + i) % slots_in_turn_ : i;
    XQueue& queue = queues_[index];
    if (!slots_[index].taken && !queue.state().markers.UnderWay() && !queue.DeviceAtWork()) return index;
  }
  return kNoSlot;
}

uint32_t XQueueTable::TakeSlot(HwQueue& hwq, uint32_t* generation) {
  MutexLock lock(mutex_);
  if (hwq.xqueue.load(std::memory_order_relaxed) != nullptr) return kNoSlot;
  const uint32_t index = FindFreeSlot();
  if (index == kNoSlot) {
    if (!std::exchange(warned_of_no_slot_, true))
      XSCHED_WARN("more than %u queues in one process: further ones run unscheduled", ipc::kMaxQueues);
    return kNoSlot;
  }
  next_slot_ = index + 1;
  first_unused_.store(std::max(end_of_used(), index + 1), std::memory_order_release);
  ++taken_slots_;
  XQueueSlot& slot = slots_[index];
  slot.taken = true;
  slot.nameless = false;
  *generation = ++slot.generation;
  hwq.xqueue.store(&queues_[index], std::memory_order_release);
  return index;
}

void XQueueTable::ReturnSlot(uint32_t index) {
  MutexLock lock(mutex_);
  queues_[index].state().SetDestroying(false);
  slots_[index].taken = false;
  --taken_slots_;
}

bool XQueueTable::NameQueue(XQueue& queue) {
  const uint64_t name = MapKey(queue.hwq().ops.platform, queue.hwq().key);
  if (!by_key_.Insert(name, &queue)) return false;
  queue.state().SetName(name);
  return true;
}

void XQueueTable::UnnameQueue(XQueue& queue) {
  if (std::exchange(SlotOf(queue).nameless, true)) return;
  queue.state().SetName(0);
  by_key_.Remove(MapKey(queue.hwq().ops.platform, queue.hwq().key));
}

XResult XQueueTable::Create(const Ref<HwQueue>& hwq, const XQueueOptions& options, XQueueHandle* out) {
  if (options.level > hwq->ops.max_level) return kXSchedErrorNotSupported;
  if (draining_.load(std::memory_order_relaxed) != 0) FinishDrained();

  uint32_t generation = 0;
  const uint32_t index = TakeSlot(*hwq, &generation);
  if (index == kNoSlot) return kXSchedErrorNotAllowed;
  XQueue& queue = queues_[index];
  ipc::ControlBlock* block = owner_.ResetBlock(index);
  const SharedMemory shared = owner_.ControlBlocks();
  if (block == nullptr || !queue.Begin({&environment_, hwq, index, block, shared, options})) {
    hwq->xqueue.store(nullptr, std::memory_order_release);
    ReturnSlot(index);
    return kXSchedErrorUnknown;
  }
  if (hwq->ops.share_memory != nullptr) hwq->ops.share_memory(hwq->impl, shared.memory, shared.size);
  if (!NameQueue(queue)) {
    queue.End();
    ReturnSlot(index);
    return kXSchedErrorUnknown;
  }
  *out = PackHandle(kHandleKind, generation, index);
  queue.SetHandle(*out);
  queue.ApplyLevels();
  owner_.QueueCreated(queue);
  return kXSchedSuccess;
}

bool XQueueTable::Destroy(XQueueHandle handle) {
  XQueuePin pin = Pin(handle);
  if (!pin) return false;
  {
    MutexLock lock(mutex_);
    if (!pin->state().SetDestroying(true)) return false;
    UnnameQueue(*pin);
    pin->SetHandle(0);
  }
  EndDraining(*pin);
  // Now, and not by the thread that releases the last pin: that one may be blocked in the driver.
  const bool any_stopped = environment_.process->hard_stops() != 0;
  pin->Attend();
  SeeGivenBack(true, any_stopped);
  pin->state().waiters.Notify();
  // Now, and not by the thread that releases the last pin: that may be the agent itself.
  owner_.QueueDestroyed(*pin);
  return true;
}

bool XQueueTable::BeginDraining(XQueue& queue) {
  {
    MutexLock lock(mutex_);
    // Who destroys it has looked already whether it is draining.
    if (queue.state().destroying() || !queue.state().SetDraining(true)) return false;
    draining_.fetch_add(1, std::memory_order_relaxed);
  }
  environment_.signals->Wake();
  return true;
}

bool XQueueTable::EndDraining(XQueue& queue) {
  if (!queue.state().SetDraining(false)) return false;
  draining_.fetch_sub(1, std::memory_order_relaxed);
  environment_.hw_queues->Unregister(queue.hwq().handle);
  return true;
}

void XQueueTable::DestroyWhenDrained(XQueue* queue) {
  const NoCancellation with_pin;
  XQueuePin pin = Pin(queue->handle());
  if (!pin) return;
  const XHwQueueOps& ops = queue->hwq().ops;
  queue->flow().AppendLastReport();
  if (queue->DeviceAtWork()) {
    // The driver may reuse the handle for the next queue.
    {
      MutexLock lock(mutex_);
      UnnameQueue(*queue);
    }
    environment_.hw_queues->Unregister(queue->hwq().handle);
    BeginDraining(*queue);  // the device's reports wake nobody
    // After this, and in the case below, the program releases the driver's queue.
    AwaitOthers(*queue);
    return;
  }
  if (ops.retain != nullptr && queue->MarkLastWork()) {
    ops.retain(queue->hwq().impl);
    {
      MutexLock lock(mutex_);
      SlotOf(*queue).retained = true;
    }
    if (!BeginDraining(*queue)) environment_.hw_queues->Unregister(queue->hwq().handle);
    return;
  }
  environment_.hw_queues->Unregister(queue->hwq().handle);
  if (Destroy(queue->handle())) AwaitOthers(*queue);
}

void XQueueTable::Forget(XQueue* queue) {
  const NoCancellation with_pin;
  XQueuePin pin = Pin(queue->handle());
  if (!pin) return;
  environment_.hw_queues->Unregister(queue->hwq().handle);
  Destroy(queue->handle());
}

void XQueueTable::AwaitOthers(const XQueue& queue) {
  AwaitForASecond([&] {
    MutexLock lock(mutex_);
    return SlotOf(queue).pins == 1;  // the caller's
  });
}

void XQueueTable::AwaitLaunches(const XQueue& queue) {
  const uint64_t newest = queue.submitted();
  AwaitForASecond([&] { return queue.issued() >= newest; });
}

// On a full stream, the driver would wait until the device gets on, which may wait for this thread.
void XQueueTable::ReportLast(XQueue& queue) {
  if (AwaitForASecond([&] { return !queue.DeviceAtWork() || !queue.state().MayBeFull(); }))
    queue.flow().AppendLastReport();
}

void XQueueTable::FinishIfDrained(XQueue& queue) {
  if (!queue.state().draining() || queue.HasLastWork()) return;
  if (EndDraining(queue)) Destroy(queue.handle());
}

void XQueueTable::FinishDrained() {
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (!queue->state().draining()) continue;
    queue->flow().AskContext();
    FinishIfDrained(*queue);
  }
}

void XQueueTable::ContextGoes(uint64_t context) {
  if (!AnyDraining()) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (!queue->state().draining() || queue->hwq().context != context) continue;
    queue->state().SetContextGoes(true);
    AwaitOthers(*queue);  // a thread may be asking the driver
  }
}

void XQueueTable::ContextGone(uint64_t context) {
  if (!AnyDraining()) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (!queue->state().context_goes() || queue->hwq().context != context) continue;
    queue->flow().NoMoreReports();
    FinishIfDrained(*queue);
  }
}

void XQueueTable::ContextStays(uint64_t context) {
  if (!AnyDraining()) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (queue->hwq().context == context) queue->state().SetContextGoes(false);
  }
}

void XQueueTable::Finish(uint32_t index) {
  XQueue& queue = queues_[index];
  queue.worker().Stop();
  // It is not held any more: opens every gate. If something cannot be given back at once, tries again for a
  // while.
  for (int i = 0; i < kFinishTries && queue.Attend().anything(); ++i) usleep(kFinishRetryUs);
  // Not before this point: the thread that has opened the last gate may not have flushed the driver's queue
  // yet.
  bool retained;
  {
    MutexLock lock(mutex_);
    retained = std::exchange(slots_[index].retained, false);
  }
  if (retained) queue.hwq().ops.release(queue.hwq().impl);
  queue.End();
  ReturnSlot(index);
}

template <typename Concerns>
void XQueueTable::ApplyLevels(Concerns&& concerns) {
  bool any_stopped = environment_.process->hard_stops() != 0;
  bool done = true;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (!concerns(*queue)) continue;
    any_stopped |= queue->suspended();
    done &= queue->ApplyLevels();
  }
  SeeGivenBack(done, any_stopped);
}

// The driver may have put off what it was asked for, also the end of a stop that did not succeed. And the
// caller may be about to wait for the device.
void XQueueTable::SeeGivenBack(bool done, bool any_stopped) {
  if (done && (!any_stopped || environment_.process_level->Settled())) return;
  environment_.signals->GiveBackLater();
}

void XQueueTable::ForceAllOpen(bool open) {
  if (!environment_.process->ForceOpen(open)) return;
  ApplyLevels([](const XQueue&) { return true; });
}

void XQueueTable::LiftSuspensions(bool lift) {
  if (!environment_.process->LiftSuspensions(lift)) return;
  // Every wait for a context comes here, and hardly any program has suspended a queue. One that is suspended
  // from now on sees the change, since both are seq_cst.
  if (std::none_of(queues_, queues_ + end_of_used(), [](const XQueue& queue) { return queue.suspended(); }))
    return;
  ApplyLevels([](const XQueue& queue) { return queue.suspended(); });
}

bool XQueueTable::AnyHasFlag(uint32_t flags) const {
  if (!environment_.process->scheduled()) return false;
  return std::any_of(queues_, queues_ + end_of_used(), [flags](const XQueue& queue) {
    return queue.handle() != 0 && (queue.state().raw_flags() & flags) != 0;
  });
}

bool XQueueTable::AnyMayBeHeld() const { return AnyHasFlag(ipc::kFlagGated); }
bool XQueueTable::AnyIsTracked() const { return AnyHasFlag(UINT32_MAX); }

bool XQueueTable::AnyMayBeFull() {
  return AnyOf([](const XQueue& queue) { return queue.state().Launching() && queue.state().MayBeFull(); });
}

bool XQueueTable::AnyLaunchMayWait() {
  return AnyOf([](const XQueue& queue) {
    return queue.state().Launching() && (queue.state().flags() & ipc::kFlagGated) != 0;
  });
}

bool XQueueTable::OthersAreQuiet(const XQueue& queue) {
  // No pins here: the thread that releases the last pin attends to the queue, and the caller holds a lock of
  // this queue.
  return !AnyOf([&queue](const XQueue& other) {
    return &other != &queue && StopTogether(other, queue) && !other.flow().KeepsStill() && !other.Idle();
  });
}

void XQueueTable::LiftHardStops(const XQueue& queue) {
  for (uint32_t next = 0; XQueuePin other = PinNext(&next);) {
    if (StopTogether(*other, queue)) other->LiftHardStop();
  }
}

XQueuePin XQueueTable::Pin(XQueueHandle handle) {
  const uint32_t index = HandleIndex(handle);
  if (index >= ipc::kMaxQueues) return XQueuePin();
  MutexLock lock(mutex_);
  if (handle == 0 || queues_[index].handle() != handle) return XQueuePin();
  ++slots_[index].pins;
  return XQueuePin(*this, queues_[index]);
}

bool XQueueTable::TryPin(XQueue& queue) {
  MutexLock lock(mutex_);
  if (queue.handle() == 0) return false;
  ++SlotOf(queue).pins;
  return true;
}

XQueuePin XQueueTable::PinNext(uint32_t* next) {
  MutexLock lock(mutex_);
  for (; *next < end_of_used(); ++*next) {
    XQueue& queue = queues_[*next];
    if (queue.handle() == 0) continue;
    ++slots_[(*next)++].pins;
    return XQueuePin(*this, queue);
  }
  return XQueuePin();
}

void XQueueTable::Unpin(XQueue& queue) {
  const uint32_t index = queue.index();
  {
    MutexLock lock(mutex_);
    if (--slots_[index].pins != 0 || !queue.state().destroying()) return;
    // This was the last pin. Nobody can pin the queue any more, because it has no handle.
  }
  if (queue.worker().FinishesQueue()) return;
  if (NoDriverCalls::Here() && environment_.driver->Request(index, DriverRequests::kFinish)) return;
  Finish(index);
}

void XQueueTable::ResetAfterFork() {
  mutex_.ResetAfterFork();
  by_key_.ResetAfterFork();
  draining_.store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < end_of_used(); ++i) {
    XQueue& queue = queues_[i];
    if (!slots_[i].taken) continue;
    // The child's driver does not have the parent's queues. Their slots stay taken, and to the program they
    // are queues that XSched does not know.
    queue.SetHandle(0);
    if (queue.has_hwq()) UnnameQueue(queue);
    queue.ResetAfterFork();
  }
}

}  // namespace xsched::preempt
