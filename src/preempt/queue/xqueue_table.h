// All XQueues of the process: their slots, their handles, and which of them are in use now.
//
//   free --Create--> live --Destroy, unpinned--> free
//                      \--DestroyWhenDrained--> draining --drained, unpinned--> free
//
// There is one slot for each control block of the process's segment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "base/pointer_map.h"
#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

class XQueueTable;

// Keeps an XQueue from being destroyed while it is used.
class XQueuePin {
 public:
  XQueuePin() = default;
  XQueuePin(XQueueTable& table, XQueue& queue) : table_(&table), queue_(&queue) {}
  XQueuePin(XQueuePin&& other) noexcept : table_(other.table_), queue_(other.queue_) {
    other.queue_ = nullptr;
  }
  XQueuePin& operator=(XQueuePin&&) = delete;
  ~XQueuePin();

  XQueue* operator->() const { return queue_; }
  XQueue& operator*() const { return *queue_; }
  explicit operator bool() const { return queue_ != nullptr; }

 private:
  XQueueTable* table_ = nullptr;
  XQueue* queue_ = nullptr;
};

// Provides the control blocks, and is notified when a queue is created or destroyed.
class XQueueTableOwner {
 public:
  // The control block of slot `index`, reset for a new queue. Null: there are no control blocks.
  virtual ipc::ControlBlock* ResetBlock(uint32_t index) = 0;
  virtual SharedMemory ControlBlocks() const = 0;
  virtual void QueueCreated(XQueue& queue) = 0;
  virtual void QueueDestroyed(XQueue& queue) = 0;

 protected:
  ~XQueueTableOwner() = default;
};

// What the table knows of one slot, beside its queue.
struct XQueueSlot {
  bool taken = false;
  bool nameless = false;  // the driver's handle may belong to another queue now
  bool retained = false;  // only XSched keeps the driver's queue alive
  uint32_t pins = 0;
  uint32_t generation = 0;
};

// Static memory for a table. All zero until used: slots that were never used are no memory.
struct XQueueSlots {
  XQueue queues[ipc::kMaxQueues];
  XQueueSlot slots[ipc::kMaxQueues];
};

class XQueueTable final : public Siblings {
 public:
  // `environment` names this table as siblings.
  constexpr XQueueTable(XQueueSlots& slots, XQueueTableOwner& owner, const XQueueEnvironment& environment)
      : queues_(slots.queues), slots_(slots.slots), owner_(owner), environment_(environment) {}

  // kXSchedErrorNotAllowed: the HwQueue has an XQueue already, or there are kMaxQueues.
  XResult Create(const Ref<HwQueue>& hwq, const XQueueOptions& options, XQueueHandle* out);
  // Opens its gates, and destroys it when nobody uses it any more. False: there is no such queue.
  bool Destroy(XQueueHandle handle);
  // Waits until no other thread uses `queue`, but not longer than a second. The caller has a pin.
  void AwaitOthers(const XQueue& queue);
  // Waits likewise until the launches that are under way have returned: they use the hardware queue without a
  // pin. After Destroy.
  void AwaitLaunches(const XQueue& queue);
  // Appends what reports the end of what the device was given, as soon as the driver has room for it, but
  // waits no longer than a second for that. After the last launch.
  void ReportLast(XQueue& queue);
  // The program has released the hardware queue: destroys both when no gate is closed any more, and when its
  // work has finished, if other queues are scheduled against it.
  void DestroyWhenDrained(XQueue* queue);
  // The hardware queue has gone, unseen, or the program uses it again: nothing is waited for any more.
  void Forget(XQueue* queue);
  // Does what DestroyWhenDrained deferred, if that is possible now. The caller has a pin.
  void FinishIfDrained(XQueue& queue);
  // True if a queue waits for its last report. Lock-free.
  bool AnyDraining() const { return draining_.load(std::memory_order_relaxed) != 0; }
  // A context of the driver is about to be destroyed: the driver is not asked about its draining
  // queues any more.
  void ContextGoes(uint64_t context);
  // It has been destroyed: its draining queues get no more reports, and are finished.
  void ContextGone(uint64_t context);
  // It was not destroyed: its draining queues still get reports.
  void ContextStays(uint64_t context);

  XQueuePin Pin(XQueueHandle handle);
  // Iterates over live queues: begin with 0, and the next index is written to *next. Empty pin: no more.
  XQueuePin PinNext(uint32_t* next);
  bool TryPin(XQueue& queue) override;
  void Unpin(XQueue& queue) override;
  void Finish(uint32_t index) override;

  // True if `predicate` is true for any live queue. It is called under the table's lock and without pins, so
  // it must be short, and must not call the table.
  template <typename Predicate>
  bool AnyOf(Predicate&& predicate) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::any_of(queues_, queues_ + end_of_used(),
                       [&](const XQueue& queue) { return queue.handle() != 0 && predicate(queue); });
  }

  // ForceAllOpen(true) opens all device-side gates and ends all stops, whatever the scheduler and the program
  // say, until as many calls with false have followed.
  void ForceAllOpen(bool open);
  // Likewise, but only for queues that the program has suspended. Queues that a scheduler holds stay held.
  void LiftSuspensions(bool lift);
  // True if a scheduler may hold some queue at any time. Lock-free.
  bool AnyMayBeHeld() const;
  // True if other queues are scheduled against some queue. Lock-free.
  bool AnyIsTracked() const;
  // True if a launch may be blocked in the driver on a full queue. Then calls that concern the whole process
  // block as well.
  bool AnyMayBeFull();
  // True if a launch is in progress on a queue that a scheduler may hold. Then it may wait for room on that
  // queue for as long as the hold lasts.
  bool AnyLaunchMayWait();
  bool OthersAreQuiet(const XQueue& queue) override;
  void LiftHardStops(const XQueue& queue) override;

  // Lock-free; for launches.
  XQueue* FindByName(uint64_t name) const { return by_key_.Find(name); }
  XQueue* Find(XPlatform platform, uint64_t key) const { return FindByName(MapKey(platform, key)); }
  // The queue in slot `index`, which may be destroyed. Its slot is not reused while markers are pending.
  XQueue& At(uint32_t index) { return queues_[index]; }
  // The handle of the live queue in slot `index`; 0: none.
  XQueueHandle HandleAt(uint32_t index) const { return queues_[index].handle(); }
  // Slots from this index on were never used. Most programs have few queues, and slots are pages apart.
  // Lock-free.
  uint32_t end_of_used() const { return first_unused_.load(std::memory_order_acquire); }

  void ResetAfterFork();

 private:
  bool AnyHasFlag(uint32_t flags) const;
  XQueueSlot& SlotOf(const XQueue& queue) REQUIRES(mutex_) { return slots_[queue.index()]; }
  // A free slot for `hwq`; kNoSlot: there is none, or it has an XQueue. `*generation`: of the slot's queues.
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  uint32_t TakeSlot(HwQueue& hwq, uint32_t* generation) EXCLUDES(mutex_);
  uint32_t FindFreeSlot() REQUIRES(mutex_);
  void ReturnSlot(uint32_t index) EXCLUDES(mutex_);
  // From now on launches find it. False: out of memory.
  bool NameQueue(XQueue& queue);
  // From now on launches do not find it any more. Does nothing if that is so already: another queue may have
  // its name then.
  void UnnameQueue(XQueue& queue) REQUIRES(mutex_);
  // The queue is kept until it has drained. False: it is draining already, or another thread destroys it.
  bool BeginDraining(XQueue& queue);
  // False: it is not draining, or another thread ends that.
  bool EndDraining(XQueue& queue);
  // Of the queues to which `concerns` applies.
  template <typename Concerns>
  void ApplyLevels(Concerns&& concerns);
  // `done`: the queues go on, as far as they may. If not, or if the HAL still has something to give back, the
  // agent's thread does it. `any_stopped`: a hard stop was there before.
  void SeeGivenBack(bool done, bool any_stopped);
  // Finishes the draining queues that have drained, or whose context has failed. Calls the driver.
  void FinishDrained();

  XQueue* const queues_;
  XQueueSlot* const slots_ PT_GUARDED_BY(mutex_);
  XQueueTableOwner& owner_;
  const XQueueEnvironment environment_;
  PointerMap<XQueue> by_key_;
  std::atomic<int> draining_{0};
  std::atomic<uint32_t> first_unused_{0};

  Mutex<LockRank::kQueueTable> mutex_;
  // Slots are used in turn, so that each stays free for a while before it is reused.
  uint32_t next_slot_ GUARDED_BY(mutex_) = 0;
  uint32_t slots_in_turn_ GUARDED_BY(mutex_) = 0;
  uint32_t taken_slots_ GUARDED_BY(mutex_) = 0;
  bool warned_of_no_slot_ GUARDED_BY(mutex_) = false;
};

inline XQueuePin::~XQueuePin() {
  if (queue_ != nullptr) table_->Unpin(*queue_);
}

}  // namespace xsched::preempt
