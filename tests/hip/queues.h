// Reads the XQueues that the shim has made for a program's streams. It is separate from the tests, because
// HIP's own headers and XSched's (hal/hip/hip_abi.h) declare the same types.
#pragma once

#include <cstdint>

#include "xsched/xsched.h"

namespace xsched::hip {

inline uint64_t KeyOf(const void* stream) { return reinterpret_cast<uint64_t>(stream); }
bool HasQueue(uint64_t key);
// The number of commands on the stream; 0 also if it has no XQueue.
uint64_t Commands(uint64_t key);
// The same for a device's null streams, and for its per-thread default streams, in all runtime instances.
uint64_t NullStreamCommands(int device = 0);
uint64_t PerThreadStreamCommands(int device = 0);
// 0: the stream has none. Null: the default stream of the current device.
XQueueHandle QueueOf(void* stream);

}  // namespace xsched::hip
