// A library that is linked to one runtime instance, as rocBLAS is.
#include "hal/hip/testing/fake_runtime.h"
#include "xsched/hip/hal.h"

extern "C" hipError_t hipGetDeviceCount(int* count);

extern "C" __attribute__((visibility("default"))) const void* AddressInside() {
  int count = 0;
  hipGetDeviceCount(&count);
  return reinterpret_cast<const void*>(&AddressInside);
}

// The default stream, seen from here.
extern "C" __attribute__((visibility("default"))) XResult MakeDefaultQueue(HwQueueHandle* hwq) {
  // Prevents a tail call, because the callee identifies its caller by the return address.
  volatile XResult result = HipQueueCreate(hwq, nullptr);
  return result;
}
