#include "server/disposer.h"

#include <deque>
#include <new>
#include <thread>

#include "base/mutex.h"

namespace xsched::server {

struct Disposer::Queue {
  Mutex<LockRank::kDisposer> mutex;
  Condition filled;
  std::deque<UniqueFd> fds GUARDED_BY(mutex);  // bounded by the limit on descriptors
};

void Disposer::Take(UniqueFd fd) noexcept {
  if (!fd) return;
  try {
    if (queue_ == nullptr) {
      queue_ = std::make_shared<Queue>();
      start_due_ = true;
    }
    MutexLock lock(queue_->mutex);
    queue_->fds.emplace_back();
    queue_->fds.back() = std::move(fd);
  } catch (const std::bad_alloc&) {
    // Closing it here could block the server, so it stays open: one descriptor is lost.
    static_cast<void>(fd.Release());
    return;
  }
  queue_->filled.NotifyAll();
  StartIfNeeded();
}

void Disposer::StartIfNeeded() noexcept {
  if (!start_due_) return;
  try {
    std::thread(Run, queue_).detach();
    start_due_ = false;
  } catch (const std::exception&) {
    // There is no thread or no memory now.
  }
}

void Disposer::Run(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    UniqueFd fd;
    {
      MutexLock lock(queue->mutex);
      while (queue->fds.empty()) queue->filled.Wait(queue->mutex);
      fd = std::move(queue->fds.front());
      queue->fds.pop_front();
    }
    fd.Reset();
  }
}

}  // namespace xsched::server
