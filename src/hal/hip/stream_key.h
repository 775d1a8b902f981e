// Maps a stream's handle to a key: a number that belongs to one stream only, while the stream exists.
//
//   handle                  stream                                      key
//   of hipStreamCreate      that one, of the runtime that made it       the handle
//   0 or 1                  the device's default one, of the runtime    bit 48, runtime and device
//   2, or 0 where _spt      the calling thread's default one of these   bit 49, runtime, device and thread
//
// Handles are addresses: user space ends below bit 48.
#pragma once

#include <cstdint>

#include "hal/hip/hip_abi.h"
#include "hal/hip/runtime.h"

namespace xsched::hip {

inline bool IsDefaultStream(hipStream_t stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }
inline bool IsNullStream(hipStream_t stream) { return reinterpret_cast<uintptr_t>(stream) <= 1; }

constexpr uint64_t NullStreamKey(int runtime, int device) {
  return uint64_t{1} << 48 | static_cast<uint64_t>(runtime & 0xff) << 16 |
         static_cast<uint64_t>(device & 0xffff);
}

// `thread`: a number that no other thread gets, below 2^32.
constexpr uint64_t PerThreadStreamKey(int runtime, int device, uint64_t thread) {
  return uint64_t{1} << 49 | static_cast<uint64_t>(runtime & 0xf) << 44 |
         static_cast<uint64_t>(device & 0xfff) << 32 | (thread & 0xffffffff);
}

}  // namespace xsched::hip
