#include "shim/cuda/events.h"

#include <new>

#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "hal/cuda/capture_mode.h"
#include "shim/cuda/fork.h"

namespace xsched::cuda {

// Making and destroying events takes locks; using them does not.
class EventTable {
 public:
  Event* Find(CUevent event) const { return by_handle_.Find(KeyOf(event)); }

  void Add(CUevent handle) {
    Event* event = NewEvent();
    if (event == nullptr) return;
    event->Set(EventPoint());
    // One of the same handle went without our seeing it.
    Free(by_handle_.Remove(KeyOf(handle)));
    if (!by_handle_.Insert(KeyOf(handle), event)) Free(event);
  }

  void Remove(CUevent handle) { Free(by_handle_.Remove(KeyOf(handle))); }

  void ResetAfterFork() {
    by_handle_.ResetAfterFork();
    mutex_.ResetAfterFork();
  }

 private:
  static uint64_t KeyOf(CUevent event) { return reinterpret_cast<uint64_t>(event); }

  Event* NewEvent() {
    MutexLock lock(mutex_);
    Event* event = free_;
    if (event == nullptr) return new (std::nothrow) Event;
    free_ = event->next_free_;
    return event;
  }

  // Events are used again and never freed, as streams are.
  void Free(Event* event) {
    if (event == nullptr) return;
    MutexLock lock(mutex_);
    event->next_free_ = free_;
    free_ = event;
  }

  PointerMap<Event> by_handle_;
  Mutex mutex_;
  Event* free_ = nullptr;
};

namespace {

constinit NoDestroy<EventTable> events;

Event* Find(CUevent event) { return event == nullptr ? nullptr : events->Find(event); }

EventPoint PointOf(CUevent event) {
  const Event* known = Find(event);
  return known == nullptr ? EventPoint() : known->Get();
}

bool HasHappened(CUevent event) {
  preempt::ReentrancyGuard guard;
  const Functions& next = Driver();
  RelaxedCaptureMode relaxed(next);
  return next.cuEventQuery != nullptr && next.cuEventQuery(event) == CUDA_SUCCESS;
}

// Whom a wait of `waiter` for `event`, which stands at `point`, is to be told of. Null: that has happened, or
// nobody cares.
preempt::XQueue* AwaitedQueue(preempt::XQueue* waiter, CUevent event, const EventPoint& point) {
  preempt::XQueue* owner = point.Queue();
  if (owner == nullptr || owner == waiter) return nullptr;
  if (!preempt::TracksDependencies(waiter) && !preempt::TracksDependencies(owner)) return nullptr;
  if (!HasHappened(event)) return owner;
  point.HasHappened();
  return nullptr;
}

}  // namespace

preempt::XQueue* EventPoint::Queue() const {
  if (stream == nullptr) return nullptr;
  preempt::XQueue* queue = FindQueue(stream->key.load(std::memory_order_acquire));
  return stream->life.load(std::memory_order_acquire) == life ? queue : nullptr;
}

void EventPoint::HasHappened() const {
  if (preempt::XQueue* queue = Queue()) preempt::RetiredUpTo(queue, number);
}

void Event::Set(const EventPoint& point) {
  uint32_t version = version_.load(std::memory_order_relaxed);
  // Of two recordings at the same time either may be the last.
  if (version % 2 != 0 || !version_.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
    return;
  // Released one by one, so that who reads one of these sees the odd version, too.
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
  return whole ? point : EventPoint();
}

void EventCreation::Finish(CUresult result, const CUevent* event) {
  static constinit ForkHandler fork_handler = {[] { events->ResetAfterFork(); }};
  if (result != CUDA_SUCCESS || event == nullptr || preempt::InsideXSched()) return;
  fork_handler.Install();
  events->Add(*event);
}

EventDestruction::EventDestruction(CUevent event) {
  if (event != nullptr) events->Remove(event);
}

EventRecording::EventRecording(CUstream stream, CUevent event) : event_(Find(event)) {
  if (event_ == nullptr || preempt::InsideXSched() || IsCapturing(stream)) return;
  const uint64_t key = KeyOf(stream);
  preempt::XQueue* queue = FindQueue(key);
  Stream* record = queue == nullptr ? nullptr : RecordOf(stream, key);
  if (record == nullptr) return;
  point_ = {record, record->life.load(std::memory_order_acquire), preempt::SubmittedNow(queue)};
}

ContextRecording::ContextRecording(CUevent event) : event_(Find(event)) {}

EventWait::EventWait(CUevent event) {
  if (!preempt::InsideXSched()) point_ = PointOf(event);
}

EventOrder::EventOrder(CUstream stream, CUevent event) {
  preempt::XQueue* waiter = QueueForCommand(stream);
  if (waiter == nullptr) return;
  const EventPoint point = PointOf(event);
  preempt::XQueue* owner = AwaitedQueue(waiter, event, point);
  if (owner == nullptr) return;
  wait_.emplace(waiter);
  preempt::AddDependency(waiter, owner, point.number);
}

ContextOrder::ContextOrder(CUcontext context, CUevent event) {
  if (preempt::InsideXSched()) return;
  const EventPoint point = PointOf(event);
  if (context == nullptr) context = CurrentContext();
  ForEachStream([&](const Stream& stream) {
    if (stream.context.load(std::memory_order_relaxed) != context) return;
    preempt::XQueue* waiter = FindQueue(stream.key.load(std::memory_order_acquire));
    if (waiter == nullptr) return;
    if (preempt::XQueue* owner = AwaitedQueue(waiter, event, point))
      preempt::AddDependency(waiter, owner, point.number);
  });
}

}  // namespace xsched::cuda
