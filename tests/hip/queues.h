// The XQueues that the shim has made for a program's streams, as tests look at them. Apart from their code,
// since HIP's own headers and XSched's (hal/hip/hip_abi.h) describe the same things.
#pragma once

#include <cstdint>

#include "xsched/xsched.h"

namespace xsched::hip {

inline uint64_t KeyOf(const void* stream) { return reinterpret_cast<uint64_t>(stream); }
bool HasQueue(uint64_t key);
// Commands that were put on the stream; 0 as well where it has no XQueue.
uint64_t Commands(uint64_t key);
// … on the null streams, and on the threads' default streams, that a device has in all runtime instances.
uint64_t NullStreamCommands(int device = 0);
uint64_t PerThreadStreamCommands(int device = 0);
// 0: the stream has none. Null: the default stream of the current device.
XQueueHandle QueueOf(void* stream);

}  // namespace xsched::hip
