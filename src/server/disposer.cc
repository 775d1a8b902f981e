#include "server/disposer.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace xsched::server {

struct Disposer::Queue {
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<UniqueFd> fds;  // bounded by the limit on descriptors
};

void Disposer::Take(UniqueFd fd) {
  if (!fd) return;
  if (queue_ == nullptr) {
    queue_ = std::make_shared<Queue>();
    std::thread(Run, queue_).detach();
  }
  {
    std::lock_guard lock(queue_->mutex);
    queue_->fds.push_back(std::move(fd));
  }
  queue_->filled.notify_one();
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
