/* HIP's part of the common examples. */
#ifndef XSCHED_EXAMPLES_HIP_DEVICE_H_
#define XSCHED_EXAMPLES_HIP_DEVICE_H_

#include <xsched/hip/hal.h>

#include "hip_check.h"

typedef struct DeviceQueue {
  hipStream_t stream;
  void* memory;
} DeviceQueue;

static inline void UseDevice(void) { HIP_CHECK(hipSetDevice(0)); }
static inline void OpenDevice(void) { UseDevice(); }

static inline DeviceQueue OpenQueue(void) {
  DeviceQueue queue;
  HIP_CHECK(hipStreamCreateWithFlags(&queue.stream, hipStreamNonBlocking));
  HIP_CHECK(hipMalloc(&queue.memory, kBytes));
  return queue;
}

static inline void CloseQueue(const DeviceQueue* queue) {
  HIP_CHECK(hipStreamDestroy(queue->stream));
  HIP_CHECK(hipFree(queue->memory));
}

static inline void Enqueue(const DeviceQueue* queue) {
  HIP_CHECK(hipMemsetAsync(queue->memory, 1, kBytes, queue->stream));
}

static inline void Finish(const DeviceQueue* queue) { HIP_CHECK(hipStreamSynchronize(queue->stream)); }

static inline XResult CreateHwQueue(HwQueueHandle* hwq, const DeviceQueue* queue) {
  return HipQueueCreate(hwq, queue->stream);
}

#endif /* XSCHED_EXAMPLES_HIP_DEVICE_H_ */
