// Identifies the GPU of a runtime instance's device by a number that is the same in every process, for every
// instance, and under HIP_VISIBLE_DEVICES.
#pragma once

#include "base/pci_device.h"
#include "hal/contract.h"
#include "hal/hip/runtime.h"
#include "xsched/types.h"

namespace xsched::hip {

struct DeviceIdentity {
  XDevice device = 0;  // by its PCI address; of a divided GPU, the part
  char name[96] = "";
};

// False: the runtime does not report it.
XSCHED_PRIVATE bool IdentifyDevice(const Functions& next, int device, DeviceIdentity* out,
                                   const char* sysfs = kSysfs);

// Makes `device` the thread's current one during a scope: default streams belong to the current device, and
// new events as well.
class WithDevice {
 public:
  WithDevice(const Functions& next, int device) : next_(next) {
    if (next_.hipGetDevice(&before_) != hipSuccess) return;
    if (before_ == device) {
      current_ = true;
    } else if (next_.hipSetDevice != nullptr && next_.hipSetDevice(device) == hipSuccess) {
      current_ = changed_ = true;
    }
  }
  ~WithDevice() {
    if (changed_) next_.hipSetDevice(before_);
  }
  WithDevice(const WithDevice&) = delete;
  WithDevice& operator=(const WithDevice&) = delete;

  explicit operator bool() const { return current_; }

 private:
  const Functions& next_;
  int before_ = 0;
  bool current_ = false;
  bool changed_ = false;
};

}  // namespace xsched::hip
