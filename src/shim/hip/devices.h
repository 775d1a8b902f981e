// The scopes of calls that wait inside the runtime for whole devices, and of device resets. A held HIP stream
// makes its caller wait before the runtime is entered. So the runtime never waits for held commands.
#pragma once

#include "preempt/api/launch.h"
#include "shim/common/barrier.h"
#include "shim/common/streams.h"
#include "shim/hip/memory.h"
#include "shim/hip/platform.h"

namespace xsched::hip {

using Barrier = shim::Barrier<Platform>;

// The scope of hipDeviceSynchronize.
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

// The scope of hipDeviceReset.
class DeviceReset {
 public:
  explicit DeviceReset(const Call& call);
  void Finish(hipError_t result) const;

 private:
  DeviceReset(const Call& call, int device);

  uint64_t home_;
  shim::DevicePoolsEnd<Memory> pools_;
  preempt::Barrier barrier_;
};

}  // namespace xsched::hip
