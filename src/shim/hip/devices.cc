#include "shim/hip/devices.h"

namespace xsched::hip {
namespace {

uint64_t HomeOf(const Instance& instance, int device) {
  return NullStreamKey(instance.runtime().index(), device);
}

}  // namespace

DeviceWait::DeviceWait(const Call& call)
    : streams_(HomeOf(call.instance(), CurrentDevice(call.instance()))) {}

DeviceReset::DeviceReset(const Call& call, int device) {
  if (device == kCurrentDevice) device = CurrentDevice(call.instance());
  shim::ForgetStreamsOf(HomeOf(call.instance(), device));
}

}  // namespace xsched::hip
