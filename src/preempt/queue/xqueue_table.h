// All XQueues of the process, and who may look at which when.
#pragma once

#include <cstdint>

#include "preempt/queue/xqueue.h"

namespace xsched::preempt {

// Keeps an XQueue from being destroyed while it is used.
class XQueuePin {
 public:
  XQueuePin() = default;
  explicit XQueuePin(XQueue* pinned) : queue_(pinned) {}
  XQueuePin(XQueuePin&& other) noexcept : queue_(other.queue_) { other.queue_ = nullptr; }
  XQueuePin& operator=(XQueuePin&&) = delete;
  ~XQueuePin();

  XQueue* operator->() const { return queue_; }
  XQueue& operator*() const { return *queue_; }
  explicit operator bool() const { return queue_ != nullptr; }

 private:
  XQueue* queue_ = nullptr;
};

struct XQueueOptions {
  XPreemptLevel level = kPreemptLevelBlock;
  LaunchConfig config;
  sched::Hints hints;
  bool blocking_submit = false;
  bool pausable = true;  // the program may suspend it
};

class XQueueTable {
 public:
  // kXSchedErrorNotAllowed: the HwQueue has an XQueue already, or there are kMaxQueues.
  static XResult Create(const Ref<HwQueue>& hwq, const XQueueOptions& options, XQueueHandle* out);
  // Opens its gates and destroys it when nobody uses it any more. False: no such queue.
  static bool Destroy(XQueueHandle handle);
  // Waits until nobody else uses `queue`, the agent among them, but for no longer than a second. The caller
  // holds a pin.
  static void AwaitOthers(const XQueue& queue);
  // The program let the hardware queue go: destroys both when no gate is closed any more.
  static void DestroyWhenDrained(XQueue* queue);
  // Does what DestroyWhenDrained put off, once that is possible. The caller holds a pin.
  static void FinishIfDrained(XQueue& queue);

  static XQueuePin Pin(XQueueHandle handle);
  // Live queues in turn: begin with 0; the next index is written to *next. Empty pin: no more.
  static XQueuePin PinNext(uint32_t* next);

  // Opens all gates in line and stops nothing, whatever the scheduler says and the program has suspended,
  // until as many calls with false have come as with true.
  static void ForceAllOpen(bool open);
  static bool all_forced_open();
  // What the program has suspended runs, likewise; what a scheduler holds does not.
  static void LiftSuspensions(bool lift);
  static bool suspensions_lifted();
  // Is there a queue that a scheduler may hold at any time? Lock-free.
  static bool AnyMayBeHeld();

  // Queues whose process is stopped on their device as a whole. It is only while nothing else of it is at
  // work there.
  static int hard_stops() { return hard_stops_.load(std::memory_order_seq_cst); }
  static void CountHardStop(int change) { hard_stops_.fetch_add(change, std::memory_order_seq_cst); }
  static bool OthersAreQuiet(const XQueue& queue);
  // `queue` is about to launch: nothing stops its device.
  static void LiftHardStops(const XQueue& queue);

  // Lock-free; for launches.
  static XQueue* Find(XPlatform platform, uint64_t key);
  // Slot of a marker's ticket. Its queue may be gone; the slot is not used again while markers are on their
  // way.
  static XQueue& Slot(uint32_t index);

  // No slot from here on has ever been a queue's. Lock-free.
  static uint32_t end_of_used();
  // Does a launch stand in the driver on a queue that may be full there? Calls that concern the whole process
  // then block as well.
  static bool AnyMayBeFull();

  // The least priority by hint of the process's live queues on a device.
  static Priority LeastPriority(XDevice device);
  // Do they differ on `device`, or have they before? Most programs hint all of their queues alike, or none.
  static bool PrioritiesHaveDiffered(XDevice device);
  // Grows with each change of them: hints, and queues that come and go.
  static uint64_t priorities_version();
  static void PrioritiesChanged();
  // Lets the HAL know of all urgencies as they are now. For the thread that calls drivers.
  static void NoteUrgencies();
  // Has each queue's urgency told that is news. For calls of the program that promise the effect: waits, but
  // not for long.
  enum class Wait { kNo, kBriefly };
  static void RequestUrgencies(Wait wait);

  static void Unpin(XQueue* queue);
  static void ResetAfterFork();

 private:
  friend class DriverCaller;

  // `queue` has come or is going.
  static void CameOrGoes(const XQueue& queue);
  // Its last user has let it go. Calls the driver, which may block.
  static void Finish(XQueue& queue);
  // Devices report by themselves, and wake nobody for it: looks for who has drained meanwhile.
  static void FinishDrained();

  static std::atomic<int> hard_stops_;
};

}  // namespace xsched::preempt
