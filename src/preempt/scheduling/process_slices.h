// Level 3: how long this process may keep each device, by the scheduler's decision and as set by the HAL.
// Setting takes the driver half a millisecond. The agent's thread does it, without the lock that Want takes.
//
// A slice counts as set only when the HAL reports success, because a failed call may have taken effect or
// not. It is tried again until it is as wanted, also without a scheduler. Thread-safe.
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
  // Sets the HAL that can set slices. Only one platform per process can.
  void Use(const XProcessOps& ops);

  void Want(XDevice device, uint64_t slice_us);
  // There is no scheduler any more: all devices get the driver's own slice.
  void WantDrivers();
  bool AnyTaken() override;
  // Sets what is wanted and not set yet. Returns when to call it again; kNever: everything is as wanted.
  TimePoint Apply(TimePoint now);
  bool Settled() override;
  void ResetAfterFork();

 private:
  static constexpr int kMaxDevices = 64;

  struct Slice {
    XDevice device;
    uint64_t wanted_us;  // 0: the driver's own
    uint64_t set_us;     // as of the last call
    bool unknown;        // the last call failed
  };

  XProcessOps Ops();
  bool SetSlices(const XProcessOps& ops) REQUIRES(applying_);

  Mutex<LockRank::kSliceSetting> applying_;  // one thread sets at a time
  Retry retry_ GUARDED_BY(applying_);
  Mutex<LockRank::kSlices> mutex_;
  XProcessOps ops_ GUARDED_BY(mutex_){};
  int count_ GUARDED_BY(mutex_) = 0;
  Slice slices_[kMaxDevices] GUARDED_BY(mutex_) = {};
  std::atomic<bool> changed_{false};
};

}  // namespace xsched::preempt
