#include "shim/hip/devices.h"

#include "shim/common/memory.h"

namespace xsched::hip {
namespace {

uint64_t HomeOf(const Instance& instance, int device) {
  return NullStreamKey(instance.runtime().index(), device);
}

}  // namespace

DeviceWait::DeviceWait(const Call& call)
    : streams_(HomeOf(call.instance(), CurrentDevice(call.instance()))) {}

DeviceReset::DeviceReset(const Call& call) : home_(HomeOf(call.instance(), CurrentDevice(call.instance()))) {
  shim::ForgetStreamsOf(home_);
}

void DeviceReset::Finish(hipError_t result) const {
  if (result == hipSuccess) shim::ForgetMemoryOf(home_);
}

}  // namespace xsched::hip
