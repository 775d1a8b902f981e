// A hardware queue: a ring that the GPU works through, on a thread of its own, in order.
//
//   active   --percentage 0-->    off the hardware: what runs is saved to the queue's save area
//   off      --percentage > 0-->  active: it goes on where it was
//
// The ring's doorbell is polled: nothing is run that has not been rung for.
#pragma once

#include <linux/kfd_ioctl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "events.h"

namespace standin_amdgpu {

class Queue {
 public:
  Queue(const kfd_ioctl_create_queue_args& made, std::atomic<uint64_t>* doorbell, Events& events);
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void Start();
  // Drops what has not ended. REQUIRES before the destructor.
  void Stop();
  // Returns when the hardware has done so.
  void Update(const kfd_ioctl_update_queue_args& config);

  bool active();
  const kfd_ioctl_create_queue_args& made() const { return made_; }

 protected:
  // One step of the work, with the lock held. False: there is nothing to do now.
  virtual bool Advance(std::unique_lock<std::mutex>& lock) = 0;
  // The queue goes off the hardware, or comes back. The lock is held.
  virtual void Save() {}
  virtual void Restore() {}

  // Returns when the queue is active. False: it ends.
  bool AwaitActive(std::unique_lock<std::mutex>& lock);
  uint64_t doorbell() const { return doorbell_->load(std::memory_order_acquire); }
  std::atomic<uint64_t>& read_pointer() const { return At(made_.read_pointer_address); }
  template <typename T>
  T* ring() const {
    return reinterpret_cast<T*>(made_.ring_base_address);
  }
  Events& events() { return events_; }

  static std::atomic<uint64_t>& At(uint64_t address) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(address);
  }

 private:
  // The queue's thread lets others go first: it would take the lock again before they have it.
  std::unique_lock<std::mutex> LockBeforeWork();
  bool IsActive() const { return (percentage_ & 0xff) != 0 && has_ring_; }
  void Run();

  const kfd_ioctl_create_queue_args made_;
  std::atomic<uint64_t>* const doorbell_;
  Events& events_;
  std::atomic<int> others_{0};  // threads that wait for the lock
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t percentage_;
  bool has_ring_ = true;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace standin_amdgpu
