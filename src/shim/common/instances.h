// Several instances of one runtime can live in a process (one in a wheel, one in the system). For each function and
// each instance there is a thunk of its own, so that a call goes on to the instance it was meant for.
#pragma once

#include <atomic>

#include "base/mutex.h"

namespace xsched::shim {

inline constexpr int kMaxInstances = 4;

// The real functions behind one wrapped function, one per instance.
class Instances {
 public:
  void* Real(int instance) const { return real_[instance].load(std::memory_order_acquire); }
  // What came with the instance when it was seen first (a driver table, say).
  const void* Tag(int instance) const { return tag_[instance].load(std::memory_order_acquire); }

  // The instance of `real`, new if need be; -1: there are too many.
  int Find(void* real, const void* tag) {
    MutexLock lock(mutex_);
    for (int i = 0; i < kMaxInstances; ++i) {
      void* known = real_[i].load(std::memory_order_relaxed);
      if (known == real) return i;
      if (known != nullptr) continue;
      tag_[i].store(tag, std::memory_order_release);
      real_[i].store(real, std::memory_order_release);
      return i;
    }
    return -1;
  }

 private:
  std::atomic<void*> real_[kMaxInstances] = {};
  std::atomic<const void*> tag_[kMaxInstances] = {};
  Mutex mutex_;
};

}  // namespace xsched::shim
