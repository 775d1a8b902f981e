// A HIP stream below an XQueue: markers by events of the instance that made it, and the rest of
// hal/contract.h. HIP has no gate to rely on (hipStreamWaitValue is a spinning kernel), so a held queue holds
// the launching thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "hal/contract.h"
#include "hal/hip/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// HipQueueCreate for the shim, which knows the instance, the device and the stream's identity. `stream` is a
// real handle, kHipStreamNull or kHipStreamPerThread. `device` is the instance's number of its device.
// HwQueueFind finds the stream by `key` (stream_key.h). `blocking_streams`: how many streams there are that
// the null stream waits for and that wait for it; null: not known. It must stay valid.
XSCHED_PRIVATE XResult HipQueueRegister(const xsched::hip::Runtime* runtime, int device, hipStream_t stream,
                                        uint64_t key, const std::atomic<uint32_t>* blocking_streams,
                                        HwQueueHandle* out);

#ifdef __cplusplus
}
#endif
