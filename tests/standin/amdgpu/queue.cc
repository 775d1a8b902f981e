#include "queue.h"

#include <chrono>

namespace standin_amdgpu {
namespace {

// How often an idle queue looks at its doorbell: soon after work, later rarely.
constexpr std::chrono::microseconds kSoon{20}, kRarely{300};
constexpr int kLooksUntilRarely = 200;

}  // namespace

Queue::Queue(const kfd_ioctl_create_queue_args& made, std::atomic<uint64_t>* doorbell, Events& events)
    : made_(made), doorbell_(doorbell), events_(events), percentage_(made.queue_percentage) {}

void Queue::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Queue::Stop() {
  {
    const auto lock = LockBeforeWork();
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Queue::Update(const kfd_ioctl_update_queue_args& config) {
  // A step of the work ends first.
  const auto lock = LockBeforeWork();
  const bool was = IsActive();
  percentage_ = config.queue_percentage;
  has_ring_ = config.ring_base_address != 0 && config.ring_size != 0;
  if (was && !IsActive()) Save();
  if (!was && IsActive()) Restore();
  changed_.notify_all();
}

std::unique_lock<std::mutex> Queue::LockBeforeWork() {
  ++others_;
  std::unique_lock lock(mutex_);
  --others_;
  return lock;
}

bool Queue::active() {
  const auto lock = LockBeforeWork();
  return IsActive();
}

bool Queue::AwaitActive(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return ends_ || IsActive(); });
  return !ends_;
}

void Queue::Run() {
  std::unique_lock lock(mutex_);
  for (int idle = 0; AwaitActive(lock);) {
    if (Advance(lock)) {
      idle = 0;
      lock.unlock();
      while (others_ > 0) std::this_thread::yield();
      lock.lock();
    } else {
      changed_.wait_for(lock, ++idle < kLooksUntilRarely ? kSoon : kRarely);
    }
  }
}

}  // namespace standin_amdgpu
