// What a stream's handle means, as a number that is one stream's alone while it lives.
//
//   handle                       stream                               key
//   of cuStreamCreate            that one                             the handle
//   1, or 0                      the current context's default one    the context, bit 48
//   2, or 0 where it is _ptsz    … of the calling thread              a hash of both, bit 55
//
// Handles are addresses: user space ends below bit 48.
#pragma once

#include <cstdint>

#include "cuda/functions.h"
#include "hal/cuda/default_stream.h"
#include "shim/common/streams.h"
#include "shim/cuda/driver.h"

namespace xsched::cuda {

// A wrapper's handle, with 0 made explicit.
template <bool kPerThread>
CUstream ActualStream(CUstream stream) {
  return stream != nullptr ? stream : kPerThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

constexpr uint64_t PerThreadStreamKey(uint64_t context, uint64_t thread) {
  // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators; one to one in each argument.
  uint64_t mixed = context + thread * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  mixed ^= mixed >> 31;
  return mixed >> 9 | uint64_t{1} << 55;
}

inline bool IsDefaultStream(CUstream stream) { return reinterpret_cast<uint64_t>(stream) <= 2; }

// Null: none is current.
inline CUcontext CurrentContext() {
  CUcontext context = nullptr;
  const Functions& next = Driver();
  if (next.cuCtxGetCurrent == nullptr || next.cuCtxGetCurrent(&context) != CUDA_SUCCESS) return nullptr;
  return context;
}

// 0: it means no stream.
inline uint64_t KeyOf(CUstream stream) {
  if (!IsDefaultStream(stream)) return reinterpret_cast<uint64_t>(stream);
  const auto context = reinterpret_cast<uint64_t>(CurrentContext());
  if (context == 0) return 0;
  return stream == CU_STREAM_PER_THREAD ? PerThreadStreamKey(context, shim::ThreadNumber())
                                        : LegacyStreamKey(context);
}

}  // namespace xsched::cuda
