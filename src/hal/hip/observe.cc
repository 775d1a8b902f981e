#include "hal/hip/observe.h"

#include "hal/hip/suspension.h"

using xsched::hip::MostLevel;
using xsched::hip::OwnHardwareQueues;

// If only level 1 is used, nothing is remembered.

int HipPerformRequest(int fd, unsigned long request, void* argument, xsched::hip::kfd::IoctlCall next) {
  if (MostLevel() == kPreemptLevelBlock) return next(fd, request, argument);
  return OwnHardwareQueues().Perform(fd, request, argument, next);
}

void HipStreamCreating() {
  if (MostLevel() != kPreemptLevelBlock) OwnHardwareQueues().StreamCreating();
}

void HipStreamCreated(hipStream_t stream) {
  if (MostLevel() != kPreemptLevelBlock) OwnHardwareQueues().StreamCreated(stream);
}

void HipStreamDestroying(hipStream_t stream) {
  if (MostLevel() != kPreemptLevelBlock) OwnHardwareQueues().StreamDestroying(stream);
}
