#include "shim/hip/devices.h"

namespace xsched::hip {
namespace {

uint64_t HomeOf(const Instance& instance, int device) {
  return NullStreamKey(instance.runtime().index(), device);
}

}  // namespace

DeviceWait::DeviceWait(const Call& call)
    : streams_(HomeOf(call.instance(), CurrentDevice(call.instance()))) {}

DeviceReset::DeviceReset(const Call& call) : DeviceReset(call, CurrentDevice(call.instance())) {}

DeviceReset::DeviceReset(const Call& call, int device)
    : home_(HomeOf(call.instance(), device)), pools_(call, device) {
  shim::ForgetStreamsOf(home_);
}

void DeviceReset::Finish(hipError_t result) const {
  pools_.Finish(result);
  if (result == hipSuccess) shim::ForgetMemoryOf(home_);
}

}  // namespace xsched::hip
