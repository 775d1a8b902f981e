// Level 3: how long this process may keep each device, as the scheduler said, and as its HAL has set.
// Setting takes the driver half a millisecond: the agent's thread does it, without the lock that Want takes.
//
// A slice counts as set when the HAL says so, and not before: what has failed may have taken effect or not.
// It is tried again until it is as wanted, whether or not there still is a scheduler. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "hal/contract.h"
#include "preempt/queue/process_level.h"
#include "preempt/scheduling/retry.h"

namespace xsched::preempt {

class ProcessSlices final : public ProcessLevel {
 public:
  // The HAL that can set them. One platform per process can.
  void Use(const XProcessOps& ops);

  void Want(XDevice device, uint64_t slice_us);
  // No scheduler any more: everybody has the driver's own.
  void WantDrivers();
  bool AnyTaken() override;
  // Sets what is wanted and not set yet. When to be called again; kNever: everything is as wanted.
  TimePoint Apply(TimePoint now);
  bool Settled() override;
  void ResetAfterFork();

 private:
  static constexpr int kMaxDevices = 64;

  struct Slice {
    XDevice device;
    uint64_t wanted_us;  // 0: the driver's own
    uint64_t set_us;     // as of the last call
    bool unknown;        // … which failed
  };

  XProcessOps Ops();
  bool SetSlices(const XProcessOps& ops);

  Mutex applying_;  // taken first; one thread sets at a time
  Retry retry_;     // under applying_
  Mutex mutex_;     // guards what follows
  XProcessOps ops_{};
  int count_ = 0;
  Slice slices_[kMaxDevices] = {};
  std::atomic<bool> changed_{false};
};

}  // namespace xsched::preempt
