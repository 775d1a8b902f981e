#include "hal/hip/observe.h"

#include "hal/hip/suspension.h"

using xsched::hip::MostLevel;
using xsched::hip::OwnHardwareQueues;

int HipPerformRequest(int fd, unsigned long request, void* argument, xsched::hip::kfd::IoctlCall next) {
  if (MostLevel() == kPreemptLevelBlock) return next(fd, request, argument);
  return OwnHardwareQueues().Perform(fd, request, argument, next);
}

void HipStreamCreating() { OwnHardwareQueues().StreamCreating(); }
void HipStreamCreated(hipStream_t stream) { OwnHardwareQueues().StreamCreated(stream); }
void HipStreamDestroying(hipStream_t stream) { OwnHardwareQueues().StreamDestroying(stream); }
