/* CUDA's part of the common examples. */
#ifndef XSCHED_EXAMPLES_CUDA_DEVICE_H_
#define XSCHED_EXAMPLES_CUDA_DEVICE_H_

#include <xsched/cuda/hal.h>

#include "cu_check.h"

typedef struct DeviceQueue {
  CUstream stream;
  CUdeviceptr memory;
} DeviceQueue;

static CUcontext context;

static inline void UseDevice(void) { CU_CHECK(cuCtxSetCurrent(context)); }

static inline void OpenDevice(void) {
  CUdevice device;
  CU_CHECK(cuInit(0));
  CU_CHECK(cuDeviceGet(&device, 0));
  CU_CHECK(cuDevicePrimaryCtxRetain(&context, device));
  UseDevice();
}

static inline DeviceQueue OpenQueue(void) {
  DeviceQueue queue;
  CU_CHECK(cuStreamCreate(&queue.stream, CU_STREAM_NON_BLOCKING));
  CU_CHECK(cuMemAlloc(&queue.memory, kBytes));
  return queue;
}

static inline void CloseQueue(const DeviceQueue* queue) {
  CU_CHECK(cuStreamDestroy(queue->stream));
  CU_CHECK(cuMemFree(queue->memory));
}

static inline void Enqueue(const DeviceQueue* queue) {
  CU_CHECK(cuMemsetD32Async(queue->memory, 1, kBytes / 4, queue->stream));
}

static inline void Finish(const DeviceQueue* queue) { CU_CHECK(cuStreamSynchronize(queue->stream)); }

static inline XResult CreateHwQueue(HwQueueHandle* hwq, const DeviceQueue* queue) {
  return CudaQueueCreate(hwq, queue->stream);
}

#endif /* XSCHED_EXAMPLES_CUDA_DEVICE_H_ */
