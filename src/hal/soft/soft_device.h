// A device in software. One thread runs the commands of its queues, one at a time, in order of arrival.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/array.h"
#include "base/clock.h"
#include "base/fifo.h"
#include "base/mutex.h"
#include "xsched/types.h"

namespace xsched::soft {

class SoftDevice;

struct Item {
  enum Kind : uint8_t { kCommand, kGate, kMarker } kind;
  uint64_t arrival;  // in the device's order
  Duration left;     // kCommand: time it still needs
  uint64_t value;    // kGate: its number; kMarker: its ticket
  void (*done)(void*);
  void* data;
};

struct SoftQueue {
  SoftDevice* device = nullptr;

 private:
  friend class SoftDevice;
  struct State {
    Fifo<Item> items;
    uint64_t gates_made = 0;
    uint64_t gates_open = 0;   // gates are opened in order, so a count is enough
    bool deactivated = false;  // level 2: the next command does not start
    bool interrupted = false;  // level 3: the running command does not go on
    bool running = false;
    uint64_t finished = 0;
    Duration busy{};
  };
  State state_;  // SoftDevice::StateOf
};

class SoftDevice {
 public:
  // The device of that id in this process, made and started at first use. Null: no memory, no thread.
  static SoftDevice* Get(XDeviceId id);

  SoftQueue* MakeQueue();
  // Waits until `queue` is empty, then frees it.
  void DestroyQueue(SoftQueue* queue);

  // `item.arrival` is filled in. False: out of memory.
  bool Append(SoftQueue& queue, Item item);
  bool AppendGate(SoftQueue& queue, uint64_t* gate);
  void OpenGate(SoftQueue& queue, uint64_t gate);
  void SetDeactivated(SoftQueue& queue, bool deactivated);
  void SetInterrupted(SoftQueue& queue, bool interrupted);
  // Waits until the queue is empty or, while it is deactivated, until none of its commands runs.
  void Synchronize(SoftQueue& queue);
  // Waits until the queue is empty, without a time limit.
  void Drain(SoftQueue& queue);
  void Report(SoftQueue& queue, uint64_t* finished, uint64_t* busy_ns);

  XDeviceId id() const { return id_; }

 private:
  explicit SoftDevice(XDeviceId id) : id_(id) {}

  static void* Main(void* device);
  void Run();
  SoftQueue::State& StateOf(SoftQueue& queue) REQUIRES(mutex_) { return queue.state_; }
  SoftQueue* NextQueue() REQUIRES(mutex_);
  void RunCommand(SoftQueue& queue) REQUIRES(mutex_);
  void Finish(SoftQueue& queue) REQUIRES(mutex_);

  const XDeviceId id_;
  pthread_t thread_{};
  Mutex<LockRank::kSoftDevice> mutex_;
  Condition changed_;
  Array<SoftQueue*> queues_ GUARDED_BY(mutex_);
  uint64_t arrivals_ GUARDED_BY(mutex_) = 0;
};

}  // namespace xsched::soft
