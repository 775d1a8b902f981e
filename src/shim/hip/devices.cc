#include "shim/hip/devices.h"

namespace xsched::hip {
namespace {

uint64_t HomeOf(const Copy& copy, int device) { return NullStreamKey(copy.runtime().index(), device); }

}  // namespace

DeviceWait::DeviceWait(const Call& call) : streams_(HomeOf(call.copy(), CurrentDevice(call.copy()))) {}

DeviceReset::DeviceReset(const Call& call, int device) {
  if (device == kCurrentDevice) device = CurrentDevice(call.copy());
  shim::ForgetStreamsOf(HomeOf(call.copy(), device));
}

}  // namespace xsched::hip
