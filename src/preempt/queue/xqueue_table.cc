#include "preempt/queue/xqueue_table.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "preempt/scheduling/agent.h"
#include "preempt/scheduling/driver_caller.h"

namespace xsched::preempt {
namespace {

constexpr uint8_t kHandleKind = 1;

// 100 ms, if need be.
constexpr int kFinishTries = 20;
constexpr useconds_t kFinishRetryUs = 5000;

struct Slots {
  XQueue queues[ipc::kMaxQueues];
};
// A union with an empty destructor: zero pages until used, never destroyed.
constinit NoDestroy<Slots> slots;
constinit NoDestroy<PointerMap<XQueue>> by_key;
constinit Mutex mutex;
constinit std::atomic<int> forced_open{0};
constinit std::atomic<int> lifted_suspensions{0};
constinit std::atomic<int> draining{0};
// Slots are used in turn, so that each rests before it is used again. As many take part as that needs: slots
// that were never used are no memory.
constexpr uint32_t kResting = 64;
constinit uint32_t next_slot = 0;
constinit uint32_t slots_in_turn = 0;
constinit uint32_t taken_slots = 0;
// Slots from here on have never been a queue's. Most programs have few queues, and slots are pages apart.
constinit std::atomic<uint32_t> first_unused{0};

// For calls of the program that promise an effect on the driver.
constexpr Duration kAwaitDriver = std::chrono::milliseconds(40);

// Under the lock. All zero until used, as no version is.
constexpr int kKnownDevicesBits = 4;
struct KnownPriority {
  XDevice device;
  uint64_t version;
  Priority least;
};
constinit KnownPriority known_priorities[1 << kKnownDevicesBits] = {};
constinit std::atomic<uint64_t> priorities_changes{1};
constinit std::atomic<bool> priorities_have_differed{false};

uint64_t MapKey(XPlatform platform, uint64_t key) { return key ^ static_cast<uint64_t>(platform) << 56; }

}  // namespace

XQueueHandle XQueueHandleAt(uint32_t index) { return slots->queues[index].handle(); }

XQueue& XQueueTable::Slot(uint32_t index) { return slots->queues[index]; }

uint32_t XQueueTable::end_of_used() { return first_unused.load(std::memory_order_acquire); }

XQueue* XQueueTable::Find(XPlatform platform, uint64_t key) { return by_key->Find(MapKey(platform, key)); }

XResult XQueueTable::Create(const Ref<HwQueue>& hwq, const XQueueOptions& options, XQueueHandle* out) {
  if (options.level > hwq->ops.max_level) return kXSchedErrorNotSupported;
  if (!Agent::Get().Start()) return kXSchedErrorUnknown;
  if (draining.load(std::memory_order_relaxed) != 0) FinishDrained();

  XQueue* queue = nullptr;
  {
    MutexLock lock(mutex);
    if (hwq->xqueue.load(std::memory_order_relaxed) != nullptr) return kXSchedErrorNotAllowed;
    slots_in_turn = std::clamp(taken_slots + kResting, slots_in_turn, ipc::kMaxQueues);
    for (uint32_t i = 0; i < ipc::kMaxQueues && queue == nullptr; ++i) {
      const uint32_t index = i < slots_in_turn ? (next_slot + i) % slots_in_turn : i;
      XQueue& candidate = slots->queues[index];
      if (candidate.taken_ || candidate.markers_.load(std::memory_order_acquire) != 0) continue;
      if (candidate.DeviceAtWork()) continue;
      queue = &candidate;
      queue->index_ = index;
    }
    if (queue == nullptr) {
      static constinit std::atomic<bool> warned{false};
      if (!warned.exchange(true, std::memory_order_relaxed))
        XSCHED_WARN("more than %u queues in one process: further ones run unscheduled", ipc::kMaxQueues);
      return kXSchedErrorNotAllowed;
    }
    next_slot = queue->index_ + 1;
    first_unused.store(std::max(end_of_used(), queue->index_ + 1), std::memory_order_release);
    ++taken_slots;
    queue->taken_ = true;
    ++queue->generation_;
    hwq->xqueue.store(queue, std::memory_order_release);
  }
  queue->gates_.Reset();
  queue->inline_gates_.Reset();
  queue->gates_failed_.store(false, std::memory_order_relaxed);
  queue->pausable_.store(false, std::memory_order_relaxed);
  queue->self_gated_.store(false, std::memory_order_relaxed);
  queue->hwq_ = hwq;
  queue->gates_in_line_.store(hwq->ops.gating == kGatingDeviceGates, std::memory_order_relaxed);
  queue->let_go_at_.store(UINT64_MAX, std::memory_order_relaxed);
  queue->block_ = Agent::Get().ResetBlock(queue->index_);
  queue->suspended_.store(false, std::memory_order_relaxed);
  queue->settled_.store(0, std::memory_order_relaxed);
  queue->told_idle_.store(0, std::memory_order_relaxed);
  queue->answered_query_.store(0, std::memory_order_relaxed);
  queue->deactivated_ = queue->interrupted_ = false;
  queue->blocking_submit_ = options.blocking_submit;
  queue->threshold_.store(options.config.threshold, std::memory_order_relaxed);
  queue->batch_size_.store(options.config.batch_size, std::memory_order_relaxed);
  queue->level_.store(options.level, std::memory_order_relaxed);
  queue->hints_ = options.hints;
  queue->urgency_ = 0;
  queue->told_priorities_.store(0, std::memory_order_relaxed);
  if (options.pausable) queue->MakePausable();
  queue->draining_.store(false, std::memory_order_relaxed);
  queue->nameless_ = false;
  XQueueHandle handle =
      uint64_t{kHandleKind} << 56 | uint64_t{queue->generation_} << 24 | (queue->index_ + 1);
  if (!by_key->Insert(MapKey(hwq->ops.platform, hwq->key), queue)) {
    hwq->xqueue.store(nullptr, std::memory_order_release);
    queue->hwq_ = Ref<HwQueue>();
    MutexLock lock(mutex);
    queue->taken_ = false;
    --taken_slots;
    return kXSchedErrorUnknown;
  }
  queue->id_ = handle;
  queue->handle_.store(handle, std::memory_order_release);
  *out = handle;
  queue->TellDevice();
  Agent::Get().QueueCreated(*queue);
  CameOrGoes(*queue);
  return kXSchedSuccess;
}

bool XQueueTable::Destroy(XQueueHandle handle) {
  XQueuePin pin = Pin(handle);
  if (!pin) return false;
  {
    MutexLock lock(mutex);
    if (pin->destroying_.exchange(true, std::memory_order_acq_rel)) return false;
    if (!pin->nameless_) by_key->Remove(MapKey(pin->hwq_->ops.platform, pin->hwq_->key));
    pin->handle_.store(0, std::memory_order_release);
  }
  // Not by who lets go last: that may be a thread that stands in the driver.
  pin->Attend(DriverCaller::IsForbidden() ? GateChain::IfBusy::kReturn : GateChain::IfBusy::kWait);
  pin->NotifyWaiters();
  // Not by who lets go last: that may be the agent itself.
  Agent::Get().QueueDestroyed(*pin);
  CameOrGoes(*pin);
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
      MutexLock lock(mutex);
      by_key->Remove(MapKey(ops.platform, queue->hwq_->key));
      queue->nameless_ = true;
    }
    UnregisterHwQueue(queue->hwq().handle);
    queue->draining_.store(true, std::memory_order_release);
    draining.fetch_add(1, std::memory_order_relaxed);
    // The program releases the driver's queue next, here and below.
    AwaitOthers(*queue);
    return;
  }
  if (queue->HasClosedGates() && ops.retain != nullptr) {
    ops.retain(queue->hwq().impl);
    queue->retained_ = true;
    queue->draining_.store(true, std::memory_order_release);
    draining.fetch_add(1, std::memory_order_relaxed);
    Agent::Get().Wake();
    return;
  }
  UnregisterHwQueue(queue->hwq().handle);
  if (Destroy(queue->handle())) AwaitOthers(*queue);
}

void XQueueTable::AwaitOthers(const XQueue& queue) {
  for (int i = 0; i < 10000; ++i) {
    {
      MutexLock lock(mutex);
      if (queue.pins_ == 1) return;  // the caller's
    }
    usleep(100);
  }
}

void XQueueTable::FinishIfDrained(XQueue& queue) {
  if (queue.HasClosedGates() || queue.DeviceAtWork() ||
      !queue.draining_.exchange(false, std::memory_order_acq_rel))
    return;
  draining.fetch_sub(1, std::memory_order_relaxed);
  UnregisterHwQueue(queue.hwq().handle);
  Destroy(queue.handle());
}

void XQueueTable::ForceAllOpen(bool open) {
  int before = forced_open.fetch_add(open ? 1 : -1, std::memory_order_seq_cst);
  if (before + (open ? 1 : 0) != 1) return;  // was open, or stays so
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) queue->ApplyLevels();
}

bool XQueueTable::all_forced_open() { return forced_open.load(std::memory_order_seq_cst) > 0; }

void XQueueTable::LiftSuspensions(bool lift) {
  int before = lifted_suspensions.fetch_add(lift ? 1 : -1, std::memory_order_seq_cst);
  if (before + (lift ? 1 : 0) != 1) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) {
    if (queue->suspended()) queue->ApplyLevels();
  }
}

bool XQueueTable::suspensions_lifted() { return lifted_suspensions.load(std::memory_order_seq_cst) > 0; }

bool XQueueTable::AnyMayBeHeld() {
  if (!Agent::Get().scheduled()) return false;
  void* memory = nullptr;
  size_t size = 0;
  Agent::Get().SharedMemory(&memory, &size);
  const auto* segment = static_cast<const ipc::Segment*>(memory);
  for (uint32_t i = 0; segment != nullptr && i < end_of_used(); ++i) {
    const uint32_t flags = segment->blocks[i].flags.load(std::memory_order_relaxed);
    if ((flags & ipc::kFlagGated) != 0 && XQueueHandleAt(i) != 0) return true;
  }
  return false;
}

constinit std::atomic<int> XQueueTable::hard_stops_{0};

bool XQueueTable::OthersAreQuiet(const XQueue& queue) {
  // Without pins: who lets the last one go attends to the queue, and the caller holds a lock of this one's.
  MutexLock lock(mutex);
  return std::all_of(slots->queues, slots->queues + end_of_used(), [&queue](const XQueue& other) {
    return other.handle() == 0 || &other == &queue || other.hwq().device != queue.hwq().device ||
           other.KeepsStill() || other.Idle();
  });
}

void XQueueTable::LiftHardStops(const XQueue& queue) {
  for (uint32_t next = 0; XQueuePin other = PinNext(&next);) {
    if (other->hwq().device == queue.hwq().device) other->LiftHardStop();
  }
}

bool XQueueTable::AnyMayBeFull() {
  MutexLock lock(mutex);
  return std::any_of(slots->queues, slots->queues + end_of_used(), [](const XQueue& queue) {
    return queue.handle() != 0 && queue.Launching() && queue.MayBeFull();
  });
}

Priority XQueueTable::LeastPriority(XDevice device) {
  MutexLock lock(mutex);
  const uint64_t version = priorities_version();
  KnownPriority& known = known_priorities[device * 0x9e3779b97f4a7c15u >> (64 - kKnownDevicesBits)];
  if (known.device == device && known.version == version) return known.least;
  Priority least = PRIORITY_MAX;
  Priority most = PRIORITY_NO_EXECUTE;
  for (uint32_t i = 0; i < end_of_used(); ++i) {
    const XQueue& queue = slots->queues[i];
    if (queue.handle() == 0 || queue.draining_.load(std::memory_order_relaxed)) continue;
    if (queue.hwq().device != device) continue;
    const Priority priority = queue.hints().priority;
    least = std::min(least, priority);
    most = std::max(most, priority);
  }
  if (least < most) priorities_have_differed.store(true, std::memory_order_relaxed);
  known = {device, version, least};
  return least;
}

bool XQueueTable::PrioritiesHaveDiffered(XDevice device) {
  LeastPriority(device);
  return priorities_have_differed.load(std::memory_order_relaxed);
}

uint64_t XQueueTable::priorities_version() { return priorities_changes.load(std::memory_order_acquire); }
void XQueueTable::PrioritiesChanged() { priorities_changes.fetch_add(1, std::memory_order_acq_rel); }

void XQueueTable::RequestUrgencies(Wait wait) {
  bool requested = false;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) requested |= queue->RequestUrgency();
  if (requested && wait == Wait::kBriefly && !DriverCaller::IsForbidden())
    DriverCaller::Get().AwaitUntil(MonotonicClock::now() + kAwaitDriver);
}

void XQueueTable::NoteUrgencies() {
  static uint64_t noted = 0;
  const uint64_t version = priorities_version();
  if (noted == version) return;
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) queue->NoteUrgency();
  noted = version;
}

void XQueueTable::CameOrGoes(const XQueue& queue) {
  PrioritiesChanged();
  if (queue.hwq().ops.apply_urgency != nullptr && PrioritiesHaveDiffered(queue.hwq().device))
    RequestUrgencies(Wait::kNo);
}

void XQueueTable::FinishDrained() {
  for (uint32_t next = 0; XQueuePin queue = PinNext(&next);) FinishIfDrained(*queue);
}

XQueuePin XQueueTable::Pin(XQueueHandle handle) {
  uint32_t index = XQueueIndex(handle);
  if (index >= ipc::kMaxQueues) return XQueuePin();
  MutexLock lock(mutex);
  XQueue& queue = slots->queues[index];
  if (handle == 0 || queue.handle() != handle) return XQueuePin();
  ++queue.pins_;
  return XQueuePin(&queue);
}

XQueuePin XQueueTable::PinNext(uint32_t* next) {
  MutexLock lock(mutex);
  for (; *next < end_of_used(); ++*next) {
    XQueue& queue = slots->queues[*next];
    if (queue.handle() == 0) continue;
    ++*next;
    ++queue.pins_;
    return XQueuePin(&queue);
  }
  return XQueuePin();
}

void XQueueTable::Unpin(XQueue* queue) {
  {
    MutexLock lock(mutex);
    if (--queue->pins_ != 0 || !queue->destroying_.load(std::memory_order_acquire)) return;
    // The last one out. Nobody can pin it any more: its handle is gone.
  }
  if (DriverCaller::IsForbidden() && DriverCaller::Get().Request(*queue, DriverCaller::kFinish)) return;
  Finish(*queue);
}

void XQueueTable::Finish(XQueue& queue) {
  queue.worker_.Stop();
  // Not held any more: opens every gate. What cannot be given back at once is tried again for a while.
  for (int i = 0; i < kFinishTries && queue.Attend(GateChain::IfBusy::kWait).stopped; ++i)
    usleep(kFinishRetryUs);
  // Only now: who has opened the last gate may not have flushed the driver's queue yet.
  if (std::exchange(queue.retained_, false)) queue.hwq_->ops.release(queue.hwq_->impl);
  queue.hwq_->xqueue.store(nullptr, std::memory_order_release);
  queue.hwq_ = Ref<HwQueue>();
  MutexLock lock(mutex);
  queue.destroying_.store(false, std::memory_order_release);
  queue.taken_ = false;
  --taken_slots;
}

XQueuePin::~XQueuePin() {
  if (queue_ != nullptr) XQueueTable::Unpin(queue_);
}

void XQueueTable::ResetAfterFork() {
  mutex.ResetAfterFork();
  by_key->ResetAfterFork();
  forced_open.store(0, std::memory_order_relaxed);
  lifted_suspensions.store(0, std::memory_order_relaxed);
  draining.store(0, std::memory_order_relaxed);
  hard_stops_.store(0, std::memory_order_relaxed);
  for (XQueue& queue : slots->queues) {
    if (!queue.taken_) continue;
    // The parent's queues: the child's driver does not have them. Their slots stay taken; the program sees
    // them as queues that XSched does not know.
    queue.handle_.store(0, std::memory_order_relaxed);
    if (queue.hwq_ && !queue.nameless_) by_key->Remove(MapKey(queue.hwq_->ops.platform, queue.hwq_->key));
    queue.suspended_.store(false, std::memory_order_relaxed);
    queue.gates_.ResetAfterFork();
    queue.inline_gates_.ResetAfterFork();
    queue.wait_mutex_.ResetAfterFork();
    queue.level_mutex_.ResetAfterFork();
    queue.hints_mutex_.ResetAfterFork();
    queue.worker_.ResetAfterFork();
  }
}

}  // namespace xsched::preempt
