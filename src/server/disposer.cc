#include "server/disposer.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

namespace xsched::server {

struct Disposer::Queue {
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<UniqueFd> fds;  // bounded by the limit on descriptors
};

void Disposer::Take(UniqueFd fd) noexcept {
  if (!fd) return;
  try {
    if (queue_ == nullptr) {
      queue_ = std::make_shared<Queue>();
      start_due_ = true;
    }
    std::lock_guard lock(queue_->mutex);
    queue_->fds.emplace_back();
    queue_->fds.back() = std::move(fd);
  } catch (const std::bad_alloc&) {
    // To close it here could stop the server, so it stays open: one descriptor is lost.
    static_cast<void>(fd.Release());
    return;
  }
  queue_->filled.notify_one();
  StartIfNeeded();
}

void Disposer::StartIfNeeded() noexcept {
  if (!start_due_) return;
  try {
    std::thread(Run, queue_).detach();
    start_due_ = false;
  } catch (const std::exception&) {
    // The system has no thread or no memory for us now.
  }
}

void Disposer::Run(std::shared_ptr<Queue> queue) {
  for (;;) {
    UniqueFd fd;
    {
      std::unique_lock lock(queue->mutex);
      queue->filled.wait(lock, [&queue] { return !queue->fds.empty(); });
      fd = std::move(queue->fds.front());
      queue->fds.pop_front();
    }
    fd.Reset();
  }
}

}  // namespace xsched::server
