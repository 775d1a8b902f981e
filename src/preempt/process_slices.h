// Level 3: how long this process may keep each device, as the scheduler said, and as its HAL has set.
// Thread-safe. Setting takes the driver half a millisecond: the agent's thread does it, without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "preempt/hal.h"

namespace xsched::preempt {

class ProcessSlices {
 public:
  static ProcessSlices& Get();

  // The HAL that can set them. One platform per process can.
  void Use(const XProcessOps& ops);

  void Want(XDevice device, uint64_t slice_us);
  // No scheduler any more: everybody has the driver's own.
  void WantDrivers();
  // Sets what is wanted and not set yet. By one thread at a time.
  void Apply();
  void ResetAfterFork();

 private:
  static constexpr int kMaxDevices = 64;

  struct Slice {
    XDevice device;
    uint64_t wanted_us;  // 0: the driver's own
    uint64_t set_us;
  };

  Mutex mutex_;
  XProcessOps ops_{};
  int count_ = 0;
  Slice slices_[kMaxDevices] = {};
  std::atomic<bool> changed_{false};
};

}  // namespace xsched::preempt
