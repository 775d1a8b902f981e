// A forked child has one thread: locks that others held are never given back.
#pragma once

#include <pthread.h>

#include <atomic>

namespace xsched::shim {

// Runs `in_child` in each child that is forked after Install.
struct ForkHandler {
  void (*in_child)();
  std::atomic<bool> installed{false};

  void Install() {
    if (installed.load(std::memory_order_relaxed) || installed.exchange(true)) return;
    pthread_atfork(nullptr, nullptr, in_child);
  }
};

}  // namespace xsched::shim
