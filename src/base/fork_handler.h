// A forked child has only one thread. Locks that other threads of its parent held are never released.
#pragma once

#include <pthread.h>

#include <atomic>

namespace xsched {

// Runs its functions around each fork after Install. Where several threads install it at a time, only the one
// that does it waits until it is done.
struct ForkHandler {
  void (*in_child)();
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  std::atomic<bool> installed{false};

  void Install() {
    if (installed.load(std::memory_order_relaxed) || installed.exchange(true)) return;
    pthread_atfork(before, in_parent, in_child);
  }
};

}  // namespace xsched
