// Calls that wait inside the runtime for whole devices, and the resetting of devices. (A held HIP stream
// holds its caller before the runtime is entered, and so nothing that the runtime waits for.)
#pragma once

#include "preempt/api/launch.h"
#include "shim/common/barrier.h"
#include "shim/common/streams.h"
#include "shim/hip/platform.h"

namespace xsched::hip {

inline constexpr int kCurrentDevice = -1;

using Barrier = shim::Barrier<Platform>;

// Around hipDeviceSynchronize.
class DeviceWait {
 public:
  explicit DeviceWait(const Call& call);
  void Finish(hipError_t result) const {
    if (result == hipSuccess) streams_.Succeeded();
  }

 private:
  preempt::Barrier barrier_;
  shim::HomeWait streams_;
};

// Around hipDeviceReset.
class DeviceReset {
 public:
  DeviceReset(const Call& call, int device);
  void Finish(hipError_t) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::hip
