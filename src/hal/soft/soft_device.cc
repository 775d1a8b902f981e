#include "hal/soft/soft_device.h"

#include <new>

#include "base/thread.h"
#include "hal/contract.h"

namespace xsched::soft {

SoftDevice* SoftDevice::Get(XDeviceId id) {
  static Mutex mutex;
  static SoftDevice* devices[64];
  MutexLock lock(mutex);
  for (SoftDevice*& device : devices) {
    if (device != nullptr && device->id_ == id) return device;
    if (device != nullptr) continue;
    auto* made = new (std::nothrow) SoftDevice(id);
    if (made == nullptr) return nullptr;
    if (StartQuietThread(&made->thread_, &SoftDevice::Main, made) != 0) {
      delete made;
      return nullptr;
    }
    pthread_detach(made->thread_);
    device = made;
    return device;
  }
  return nullptr;
}

SoftQueue* SoftDevice::MakeQueue() {
  auto* queue = new (std::nothrow) SoftQueue;
  if (queue == nullptr) return nullptr;
  queue->device = this;
  MutexLock lock(mutex_);
  if (queues_.Push(queue)) return queue;
  delete queue;
  return nullptr;
}

void SoftDevice::DestroyQueue(SoftQueue* queue) {
  {
    MutexLock lock(mutex_);
    while (!queue->items.empty() || queue->running) changed_.Wait(mutex_);
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i] == queue) queues_.RemoveUnordered(i);
    }
  }
  delete queue;
}

bool SoftDevice::Append(SoftQueue& queue, Item item) {
  MutexLock lock(mutex_);
  item.arrival = ++arrivals_;
  if (!queue.items.Push(item)) return false;
  changed_.NotifyAll();
  return true;
}

bool SoftDevice::AppendGate(SoftQueue& queue, uint64_t* gate) {
  MutexLock lock(mutex_);
  if (!queue.items.Push(Item{Item::kGate, ++arrivals_, {}, queue.gates_made + 1, nullptr, nullptr}))
    return false;
  *gate = ++queue.gates_made;
  return true;
}

void SoftDevice::OpenGate(SoftQueue& queue, uint64_t gate) {
  MutexLock lock(mutex_);
  queue.gates_open = gate;
  changed_.NotifyAll();
}

void SoftDevice::SetDeactivated(SoftQueue& queue, bool deactivated) {
  MutexLock lock(mutex_);
  queue.deactivated = deactivated;
  changed_.NotifyAll();
}

void SoftDevice::SetInterrupted(SoftQueue& queue, bool interrupted) {
  MutexLock lock(mutex_);
  queue.interrupted = interrupted;
  changed_.NotifyAll();
}

void SoftDevice::Synchronize(SoftQueue& queue) {
  MutexLock lock(mutex_);
  while (queue.running || !(queue.items.empty() || queue.deactivated)) changed_.Wait(mutex_);
}

void SoftDevice::Drain(SoftQueue& queue) {
  MutexLock lock(mutex_);
  while (queue.running || !queue.items.empty()) changed_.Wait(mutex_);
}

void SoftDevice::Report(SoftQueue& queue, uint64_t* finished, uint64_t* busy_ns) {
  MutexLock lock(mutex_);
  if (finished != nullptr) *finished = queue.finished;
  if (busy_ns != nullptr) *busy_ns = static_cast<uint64_t>(queue.busy.count());
}

void* SoftDevice::Main(void* device) {
  static_cast<SoftDevice*>(device)->Run();
  return nullptr;
}

void SoftDevice::Run() {
  mutex_.Lock();
  for (;;) {
    SoftQueue* queue = NextQueue();
    if (queue == nullptr) {
      changed_.Wait(mutex_);
    } else if (queue->items.front().kind == Item::kCommand) {
      RunCommand(*queue);
    } else {
      Finish(*queue);
    }
  }
}

// The queue whose next item arrived first, of those that may go on.
SoftQueue* SoftDevice::NextQueue() {
  SoftQueue* next = nullptr;
  for (SoftQueue* queue : queues_) {
    if (queue->items.empty() || queue->interrupted) continue;
    const Item& item = queue->items.front();
    if (item.kind == Item::kGate && item.value > queue->gates_open) continue;
    if (item.kind == Item::kCommand && queue->deactivated) continue;
    if (next == nullptr || item.arrival < next->items.front().arrival) next = queue;
  }
  return next;
}

// REQUIRES: the lock; gives it up while the command runs.
void SoftDevice::RunCommand(SoftQueue& queue) {
  queue.running = true;
  TimePoint began = MonotonicClock::now();
  TimePoint end = began + queue.items.front().left;
  while (!queue.interrupted && MonotonicClock::now() < end) changed_.WaitUntil(mutex_, end);
  TimePoint now = MonotonicClock::now();
  queue.running = false;
  queue.busy += (now < end ? now : end) - began;
  if (now >= end) {
    Finish(queue);
  } else {
    queue.items.front().left = end - now;
    changed_.NotifyAll();
  }
}

// The first item is done. REQUIRES: the lock; gives it up while telling.
void SoftDevice::Finish(SoftQueue& queue) {
  Item item = queue.items.front();
  queue.running = true;  // keeps the queue until its owner has been told
  if (item.kind == Item::kCommand) ++queue.finished;
  mutex_.Unlock();
  if (item.done != nullptr) item.done(item.data);
  if (item.kind == Item::kMarker) HwQueueRetired(item.value);
  mutex_.Lock();
  queue.items.Pop();
  queue.running = false;
  changed_.NotifyAll();
}

}  // namespace xsched::soft
