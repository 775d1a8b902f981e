#include "shim/common/events.h"

#include <new>

#include "base/fork_handler.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"

namespace xsched::shim {

class EventTable {
 public:
  Event* Find(uint64_t handle) const { return by_handle_.Find(handle); }

  void Add(uint64_t handle) {
    Event* event = NewEvent();
    if (event == nullptr) return;
    event->Set(EventPoint());
    event->seen_.store(true, std::memory_order_release);
    // An event with the same handle was destroyed, and we did not see it.
    Free(by_handle_.Remove(handle));
    if (!by_handle_.Insert(handle, event)) Free(event);
  }

  void Remove(uint64_t handle) { Free(by_handle_.Remove(handle)); }

  void ResetAfterFork() {
    by_handle_.ResetAfterFork();
    mutex_.ResetAfterFork();
  }

 private:
  Event* NewEvent() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Event* event = free_;
    if (event == nullptr) return new (std::nothrow) Event;
    free_ = event->next_free_;
    return event;
  }

  // Events are reused and never freed, as streams are.
  void Free(Event* event) EXCLUDES(mutex_) {
    if (event == nullptr) return;
    MutexLock lock(mutex_);
    event->next_free_ = free_;
    free_ = event;
  }

  PointerMap<Event> by_handle_;
  Mutex<LockRank::kEventRecords> mutex_;
  Event* free_ GUARDED_BY(mutex_) = nullptr;
};

namespace {

constinit NoDestroy<EventTable> events;

}  // namespace

preempt::XQueue* EventPoint::Queue() const {
  if (stream == nullptr) return nullptr;
  preempt::XQueue* queue = FindQueue(stream->key.load(std::memory_order_acquire));
  return stream->life.load(std::memory_order_acquire) == life ? queue : nullptr;
}

void EventPoint::HasHappened() const {
  if (preempt::XQueue* queue = Queue()) preempt::RetiredUpTo(queue, number);
}

preempt::XQueue* EventPoint::AwaitedBy(preempt::XQueue* waiter) const {
  preempt::XQueue* owner = Queue();
  return owner != nullptr && preempt::TracksDependency(waiter, owner) ? owner : nullptr;
}

void Event::Set(const EventPoint& point) {
  uint32_t version = version_.load(std::memory_order_relaxed);
  // Of two recordings at the same time, either may count as the last.
  if (version % 2 != 0 || !version_.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
    return;
  // Each store is a release, so that a reader of one of these also sees the odd version.
  stream_.store(point.stream, std::memory_order_release);
  life_.store(point.life, std::memory_order_release);
  number_.store(point.number, std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

EventPoint Event::Get() const {
  const uint32_t version = version_.load(std::memory_order_acquire);
  EventPoint point;
  point.stream = stream_.load(std::memory_order_acquire);
  point.life = life_.load(std::memory_order_acquire);
  point.number = number_.load(std::memory_order_acquire);
  const bool whole = version % 2 == 0 && version_.load(std::memory_order_relaxed) == version;
  const bool known = point.in_capture() || seen_.load(std::memory_order_acquire);
  return whole && known ? point : EventPoint();
}

Event* FindEvent(uint64_t handle) { return handle == 0 ? nullptr : events->Find(handle); }

EventPoint PointOf(uint64_t handle) {
  const Event* event = FindEvent(handle);
  return event == nullptr ? EventPoint() : event->Get();
}

void AddEvent(uint64_t handle) {
  static constinit ForkHandler fork_handler = {[] { events->ResetAfterFork(); }};
  fork_handler.Install();
  if (handle != 0) events->Add(handle);
}

void RemoveEvent(uint64_t handle) {
  if (handle != 0) events->Remove(handle);
}

}  // namespace xsched::shim
