#include "preempt/queue/xqueue_table.h"

#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace xsched::preempt {
namespace {

constexpr uint8_t kHandleKind = 1;

// Slots that rest before they are used again.
constexpr uint32_t kResting = 64;

// 100 ms, if need be.
constexpr int kFinishTries = 20;
constexpr useconds_t kFinishRetryUs = 5000;

}  // namespace

// A free slot for `hwq`; null: none, or it has an XQueue.
XQueueSlot* XQueueTable::TakeSlot(HwQueue& hwq, uint32_t* index) {
  MutexLock lock(mutex_);
  if (hwq.xqueue.load(std::memory_order_relaxed) != nullptr) return nullptr;
  slots_in_turn_ = std::clamp(taken_slots_ + kResting, slots_in_turn_, ipc::kMaxQueues);
  XQueueSlot* chosen = nullptr;
  for (uint32_t i = 0; i < ipc::kMaxQueues && chosen == nullptr; ++i) {
    *index = i < slots_in_turn_ ? (next_slot_ + i) % slots_in_turn_ : i;
    XQueueSlot& candidate = slots_[*index];
    if (candidate.taken || candidate.queue.state().MarkersUnderWay()) continue;
    if (candidate.queue.DeviceAtWork()) continue;
    chosen = &candidate;
  }
  if (chosen == nullptr) {
    static constinit std::atomic<bool> warned{false};
    if (!warned.exchange(true, std::memory_order_relaxed))
      XSCHED_WARN("more than %u queues in one process: further ones run unscheduled", ipc::kMaxQueues);
    return nullptr;
  }
  next_slot_ = *index + 1;
  first_unused_.store(std::max(end_of_used(), *index + 1), std::memory_order_release);
  ++taken_slots_;
  chosen->taken = true;
  ++chosen->generation;
  chosen->nameless = false;
  hwq.xqueue.store(&chosen->queue, std::memory_order_release);
  return chosen;
}

void XQueueTable::ReturnSlot(XQueueSlot& slot) {
  MutexLock lock(mutex_);
  slot.queue.state().SetDestroying(false);
  slot.taken = false;
  --taken_slots_;
}

XResult XQueueTable::Create(const Ref<HwQueue>& hwq, const XQueueOptions& options, XQueueHandle* out) {
  if (options.level > hwq->ops.max_level) return kXSchedErrorNotSupported;
  if (draining_.load(std::memory_order_relaxed) != 0) FinishDrained();

  uint32_t index = 0;
  XQueueSlot* slot = TakeSlot(*hwq, &index);
  if (slot == nullptr) return kXSchedErrorNotAllowed;
  XQueue& queue = slot->queue;
  ipc::ControlBlock* block = owner_.ResetBlock(index);
  if (block == nullptr || !queue.Begin({&environment_, hwq, index, block, owner_.ControlBlocks(), options})) {
    hwq->xqueue.store(nullptr, std::memory_order_release);
    ReturnSlot(*slot);
    return kXSchedErrorUnknown;
  }
  if (!by_key_.Insert(MapKey(hwq->ops.platform, hwq->key), &queue)) {
    queue.End();
    ReturnSlot(*slot);
    return kXSchedErrorUnknown;
  }
  *out = uint64_t{kHandleKind} << 56 | uint64_t{slot->generation} << 24 | (index + 1);
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
    if (!SlotOf(*pin).nameless) by_key_.Remove(MapKey(pin->hwq().ops.platform, pin->hwq().key));
    pin->SetHandle(0);
  }
  // Not by the thread that lets go last: that may be one that stands in the driver.
  pin->Attend(NoDriverCalls::Here() ? IfBusy::kReturn : IfBusy::kWait);
  pin->NotifyWaiters();
  // Not by the thread that lets go last: that may be the agent itself.
  owner_.QueueDestroyed(*pin);
  return true;
}

void XQueueTable::DestroyWhenDrained(XQueue* queue) {
  XQueuePin pin = Pin(queue->handle());
  if (!pin) return;
  const XHwQueueOps& ops = queue->hwq().ops;
  queue->AppendLastReport();
  if (queue->DeviceAtWork()) {
    // The driver may give the next queue the same handle.
    {
      MutexLock lock(mutex_);
      by_key_.Remove(MapKey(ops.platform, queue->hwq().key));
      SlotOf(*queue).nameless = true;
    }
    UnregisterHwQueue(queue->hwq().handle);
    queue->state().SetDraining(true);
    draining_.fetch_add(1, std::memory_order_relaxed);
    // The program releases the driver's queue next, here and below.
    AwaitOthers(*queue);
    return;
  }
  if (queue->HasClosedGates() && ops.retain != nullptr) {
    ops.retain(queue->hwq().impl);
    SlotOf(*queue).retained = true;
    queue->state().SetDraining(true);
    draining_.fetch_add(1, std::memory_order_relaxed);
    environment_.signals->Wake();
    return;
  }
  UnregisterHwQueue(queue->hwq().handle);
  if (Destroy(queue->handle())) AwaitOthers(*queue);
}

void XQueueTable::AwaitOthers(const XQueue& queue) {
  for (int i = 0; i < 10000; ++i) {
    {
      MutexLock lock(mutex_);
      if (SlotOf(queue).pins == 1) return;  // the caller's
    }
    usleep(100);
  }
}

void XQueueTable::FinishIfDrained(XQueue& queue) {
  if (queue.HasClosedGates() || queue.DeviceAtWork() || !queue.state().draining()) return;
  if (!queue.state().SetDraining(false)) return;  // another thread does it
  draining_.fetch_sub(1, std::memory_order_relaxed);
  UnregisterHwQueue(queue.hwq().handle);
  Destroy(queue.handle());
}

void XQueueTable::FinishDrained() {
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) FinishIfDrained(*queue);
}

void XQueueTable::Finish(uint32_t index) {
  XQueueSlot& slot = slots_[index];
  XQueue& queue = slot.queue;
  queue.worker().Stop();
  // Not held any more: opens every gate. What cannot be given back at once is tried again for a while.
  for (int i = 0; i < kFinishTries && queue.Attend(IfBusy::kWait).stopped; ++i) usleep(kFinishRetryUs);
  // Only now: the thread that has opened the last gate may not have flushed the driver's queue yet.
  if (std::exchange(slot.retained, false)) queue.hwq().ops.release(queue.hwq().impl);
  queue.End();
  ReturnSlot(slot);
}

void XQueueTable::ForceAllOpen(bool open) {
  if (!environment_.process->ForceOpen(open)) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) queue->ApplyLevels();
}

void XQueueTable::LiftSuspensions(bool lift) {
  if (!environment_.process->LiftSuspensions(lift)) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (queue->suspended()) queue->ApplyLevels();
  }
}

bool XQueueTable::AnyMayBeHeld() const {
  if (!environment_.process->scheduled()) return false;
  return std::any_of(slots_, slots_ + end_of_used(), [](const XQueueSlot& slot) {
    return slot.queue.handle() != 0 &&
           (slot.queue.block().flags.load(std::memory_order_relaxed) & ipc::kFlagGated) != 0;
  });
}

bool XQueueTable::AnyMayBeFull() {
  return AnyOf([](const XQueue& queue) { return queue.Launching() && queue.MayBeFull(); });
}

bool XQueueTable::OthersAreQuiet(const XQueue& queue) {
  // Without pins: the thread that lets the last one go attends to the queue, and the caller holds a lock of
  // this one's.
  return !AnyOf([&queue](const XQueue& other) {
    return &other != &queue && other.hwq().device == queue.hwq().device && !other.KeepsStill() &&
           !other.Idle();
  });
}

void XQueueTable::LiftHardStops(const XQueue& queue) {
  for (uint32_t next = 0; XQueuePin other = PinNext(&next);) {
    if (other->hwq().device == queue.hwq().device) other->LiftHardStop();
  }
}

XQueuePin XQueueTable::Pin(XQueueHandle handle) {
  const uint32_t index = XQueueIndex(handle);
  if (index >= ipc::kMaxQueues) return XQueuePin();
  MutexLock lock(mutex_);
  XQueueSlot& slot = slots_[index];
  if (handle == 0 || slot.queue.handle() != handle) return XQueuePin();
  ++slot.pins;
  return XQueuePin(*this, slot.queue);
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
    XQueueSlot& slot = slots_[*next];
    if (slot.queue.handle() == 0) continue;
    ++*next;
    ++slot.pins;
    return XQueuePin(*this, slot.queue);
  }
  return XQueuePin();
}

void XQueueTable::Unpin(XQueue& queue) {
  const uint32_t index = queue.index();
  {
    MutexLock lock(mutex_);
    if (--slots_[index].pins != 0 || !queue.state().destroying()) return;
    // The last one out. Nobody can pin it any more: its handle is gone.
  }
  if (NoDriverCalls::Here() && environment_.driver->Request(index, DriverRequests::kFinish)) return;
  Finish(index);
}

void XQueueTable::ResetAfterFork() {
  mutex_.ResetAfterFork();
  by_key_.ResetAfterFork();
  draining_.store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < end_of_used(); ++i) {
    XQueueSlot& slot = slots_[i];
    if (!slot.taken) continue;
    // The parent's queues: the child's driver does not have them. Their slots stay taken; the program sees
    // them as queues that XSched does not know.
    slot.queue.SetHandle(0);
    if (slot.queue.has_hwq() && !slot.nameless)
      by_key_.Remove(MapKey(slot.queue.hwq().ops.platform, slot.queue.hwq().key));
    slot.queue.ResetAfterFork();
  }
}

}  // namespace xsched::preempt
