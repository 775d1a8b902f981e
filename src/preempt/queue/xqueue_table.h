// All XQueues of the process: their slots, their handles, and who uses which at the moment.
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

// Who has the control blocks, and hears of queues that come and go.
class XQueueTableOwner {
 public:
  // The control block of slot `index`, reset for a new queue. Null: there are none.
  virtual ipc::ControlBlock* ResetBlock(uint32_t index) = 0;
  virtual SharedMemory ControlBlocks() const = 0;
  virtual void QueueCreated(XQueue& queue) = 0;
  virtual void QueueDestroyed(XQueue& queue) = 0;

 protected:
  ~XQueueTableOwner() = default;
};

struct XQueueSlot {
  XQueue queue;
  bool taken = false;
  bool nameless = false;  // the driver's handle is another queue's by now
  bool retained = false;  // the driver's queue is there for us alone
  uint32_t pins = 0;
  uint32_t generation = 0;
};

// Static memory for a table. All zero until used: slots that were never used are no memory.
struct XQueueSlots {
  XQueueSlot slots[ipc::kMaxQueues];
};

class XQueueTable final : public Siblings {
 public:
  // `environment` names this table as siblings.
  constexpr XQueueTable(XQueueSlots& slots, XQueueTableOwner& owner, const XQueueEnvironment& environment)
      : slots_(slots.slots), owner_(owner), environment_(environment) {}

  // kXSchedErrorNotAllowed: the HwQueue has an XQueue already, or there are kMaxQueues.
  XResult Create(const Ref<HwQueue>& hwq, const XQueueOptions& options, XQueueHandle* out);
  // Opens its gates and destroys it when nobody uses it any more. False: no such queue.
  bool Destroy(XQueueHandle handle);
  // Waits until nobody else uses `queue`, the agent among them, but for no longer than a second. The caller
  // holds a pin.
  void AwaitOthers(const XQueue& queue);
  // The program let the hardware queue go: destroys both when no gate is closed any more.
  void DestroyWhenDrained(XQueue* queue);
  // Does what DestroyWhenDrained put off, once that is possible. The caller holds a pin.
  void FinishIfDrained(XQueue& queue);
  // The last user of the queue in slot `index` has let it go. Calls the driver, which may block.
  void Finish(uint32_t index);

  XQueuePin Pin(XQueueHandle handle);
  // Live queues in turn: begin with 0; the next index is written to *next. Empty pin: no more.
  XQueuePin PinNext(uint32_t* next);
  bool TryPin(XQueue& queue) override;
  void Unpin(XQueue& queue) override;

  // Is any live queue so? Under the table's lock, without pins: `predicate` must be brief, and must not call
  // the table.
  template <typename Predicate>
  bool AnyOf(Predicate&& predicate) {
    MutexLock lock(mutex_);
    return std::any_of(slots_, slots_ + end_of_used(), [&](const XQueueSlot& slot) {
      return slot.queue.handle() != 0 && predicate(slot.queue);
    });
  }

  // Opens all device gates and stops nothing, whatever the scheduler says and the program has suspended,
  // until as many calls with false have come as with true.
  void ForceAllOpen(bool open);
  // What the program has suspended runs, likewise; what a scheduler holds does not.
  void LiftSuspensions(bool lift);
  // Is there a queue that a scheduler may hold at any time? Lock-free.
  bool AnyMayBeHeld() const;
  // Does a launch stand in the driver on a queue that may be full there? Calls that concern the whole process
  // then block as well.
  bool AnyMayBeFull();
  bool OthersAreQuiet(const XQueue& queue) override;
  void LiftHardStops(const XQueue& queue) override;

  // Lock-free; for launches.
  XQueue* Find(XPlatform platform, uint64_t key) const { return by_key_.Find(MapKey(platform, key)); }
  // The queue in slot `index`, which may be gone: its slot is not used again while markers are on their way.
  XQueue& At(uint32_t index) { return slots_[index].queue; }
  // The handle of the live queue in slot `index`; 0: none.
  XQueueHandle HandleAt(uint32_t index) const { return slots_[index].queue.handle(); }
  // No slot from here on has ever been a queue's: most programs have few, and slots are pages apart.
  // Lock-free.
  uint32_t end_of_used() const { return first_unused_.load(std::memory_order_acquire); }

  void ResetAfterFork();

 private:
  static uint64_t MapKey(XPlatform platform, uint64_t key) {
    return key ^ static_cast<uint64_t>(platform) << 56;
  }
  XQueueSlot& SlotOf(const XQueue& queue) { return slots_[queue.index()]; }
  XQueueSlot* TakeSlot(HwQueue& hwq, uint32_t* index);
  void ReturnSlot(XQueueSlot& slot);
  // Devices report by themselves, and wake nobody for it: looks for who has drained meanwhile.
  void FinishDrained();

  XQueueSlot* const slots_;
  XQueueTableOwner& owner_;
  const XQueueEnvironment environment_;
  PointerMap<XQueue> by_key_;
  std::atomic<int> draining_{0};
  std::atomic<uint32_t> first_unused_{0};

  Mutex mutex_;  // guards what follows, and the slots but for their queues
  // Slots are used in turn, so that each rests before it is used again. As many take part as that needs.
  uint32_t next_slot_ = 0;
  uint32_t slots_in_turn_ = 0;
  uint32_t taken_slots_ = 0;
};

inline XQueuePin::~XQueuePin() {
  if (queue_ != nullptr) table_->Unpin(*queue_);
}

}  // namespace xsched::preempt
