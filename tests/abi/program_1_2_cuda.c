/* The program of 1.2 over the default stream of CUDA (the stand-in driver). Also compiled as C++, and run
 * with the shim. */
#include <cuda.h>
#include <xsched/cuda/hal.h>

#include "program_1_2.h"

static XResult Create(HwQueueHandle* hwq) { return CudaQueueCreate(hwq, NULL); }

int main(void) {
  CUdevice device;
  CUcontext context;
  CUdeviceptr memory;
  HwQueueHandle found = 0;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&memory, 4096) == CUDA_SUCCESS);
  EXPECT(cuMemsetD32Async(memory, 0, 1024, NULL) ==
         CUDA_SUCCESS); /* under the shim the stream has a queue now */
  EXPECT(RunProgramOf12(Create) == 0);
  EXPECT(CudaQueueGet(&found, NULL) == kXSchedErrorNotFound);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  return failures == 0 ? 0 : 1;
}
