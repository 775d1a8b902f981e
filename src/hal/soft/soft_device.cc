#include "hal/soft/soft_device.h"

#include <new>

#include "base/thread.h"
#include "hal/contract.h"

namespace xsched::soft {

SoftDevice* SoftDevice::Get(XDeviceId id) {
  static Mutex<LockRank::kSoftDevices> mutex;
  static SoftDevice* devices[64] GUARDED_BY(mutex);
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
    while (!StateOf(*queue).items.empty() || StateOf(*queue).running) changed_.Wait(mutex_);
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i] == queue) queues_.RemoveUnordered(i);
    }
  }
  delete queue;
}

bool SoftDevice::Append(SoftQueue& queue, Item item) {
  MutexLock lock(mutex_);
  item.arrival = ++arrivals_;
  if (!StateOf(queue).items.Push(item)) return false;
  changed_.NotifyAll();
  return true;
}

bool SoftDevice::AppendGate(SoftQueue& queue, uint64_t* gate) {
  MutexLock lock(mutex_);
  SoftQueue::State& state = StateOf(queue);
  if (!state.items.Push(Item{Item::kGate, ++arrivals_, {}, state.gates_made + 1, nullptr, nullptr}))
    return false;
  *gate = ++state.gates_made;
  return true;
}

void SoftDevice::OpenGate(SoftQueue& queue, uint64_t gate) {
  MutexLock lock(mutex_);
  StateOf(queue).gates_open = gate;
  changed_.NotifyAll();
}

void SoftDevice::SetDeactivated(SoftQueue& queue, bool deactivated) {
  MutexLock lock(mutex_);
  StateOf(queue).deactivated = deactivated;
  changed_.NotifyAll();
}

void SoftDevice::SetInterrupted(SoftQueue& queue, bool interrupted) {
  MutexLock lock(mutex_);
  StateOf(queue).interrupted = interrupted;
  changed_.NotifyAll();
}

void SoftDevice::Synchronize(SoftQueue& queue) {
  MutexLock lock(mutex_);
  SoftQueue::State& state = StateOf(queue);
  while (state.running || !(state.items.empty() || state.deactivated)) changed_.Wait(mutex_);
}

void SoftDevice::Drain(SoftQueue& queue) {
  MutexLock lock(mutex_);
  SoftQueue::State& state = StateOf(queue);
  while (state.running || !state.items.empty()) changed_.Wait(mutex_);
}

void SoftDevice::Report(SoftQueue& queue, uint64_t* finished, uint64_t* busy_ns) {
  MutexLock lock(mutex_);
  SoftQueue::State& state = StateOf(queue);
  if (finished != nullptr) *finished = state.finished;
  if (busy_ns != nullptr) *busy_ns = static_cast<uint64_t>(state.busy.count());
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
    } else if (StateOf(*queue).items.front().kind == Item::kCommand) {
      RunCommand(*queue);
    } else {
      Finish(*queue);
    }
  }
}

// Of the queues that may go on, the one whose next item arrived first.
SoftQueue* SoftDevice::NextQueue() {
  SoftQueue* next = nullptr;
  for (SoftQueue* queue : queues_) {
    SoftQueue::State& state = StateOf(*queue);
    if (state.items.empty() || state.interrupted) continue;
    const Item& item = state.items.front();
    if (item.kind == Item::kGate && item.value > state.gates_open) continue;
    if (item.kind == Item::kCommand && state.deactivated) continue;
    if (next == nullptr || item.arrival < StateOf(*next).items.front().arrival) next = queue;
  }
  return next;
}

// The lock is released while the command runs.
void SoftDevice::RunCommand(SoftQueue& queue) {
  SoftQueue::State& state = StateOf(queue);
  state.running = true;
  TimePoint began = MonotonicClock::now();
  TimePoint end = began + state.items.front().left;
  while (!state.interrupted && MonotonicClock::now() < end) changed_.WaitUntil(mutex_, end);
  TimePoint now = MonotonicClock::now();
  state.running = false;
  state.busy += (now < end ? now : end) - began;
  if (now >= end) {
    Finish(queue);
  } else {
    state.items.front().left = end - now;
    changed_.NotifyAll();
  }
}

// The first item is done. The lock is released during the notification.
void SoftDevice::Finish(SoftQueue& queue) {
  SoftQueue::State& state = StateOf(queue);
  Item item = state.items.front();
  state.running = true;  // keeps the queue until its owner was notified
  if (item.kind == Item::kCommand) ++state.finished;
  mutex_.Unlock();
  if (item.done != nullptr) item.done(item.data);
  if (item.kind == Item::kMarker) HwQueueRetired(item.value);
  mutex_.Lock();
  state.items.Pop();
  state.running = false;
  changed_.NotifyAll();
}

}  // namespace xsched::soft
