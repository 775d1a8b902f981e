// Maps a stream's handle to a key: a number that belongs to one stream only, while the stream exists.
//
//   handle                       stream                               key
//   of cuStreamCreate            that one                             the handle
//   1, or 0                      the current context's default one    the context, bit 48
//   2, or 0 where it is _ptsz    the calling thread's default one     a hash of both, bit 55
//
// Handles are addresses: user space ends below bit 48.
#pragma once

#include <cstdint>

#include "cuda/functions.h"

namespace xsched::cuda {

inline bool IsDefaultStream(CUstream stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

constexpr uint64_t LegacyStreamKey(uint64_t context) { return context | uint64_t{1} << 48; }

// `thread`: a number that no other thread gets.
constexpr uint64_t PerThreadStreamKey(uint64_t context, uint64_t thread) {
  // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators; one to one in each argument.
  uint64_t mixed = context + thread * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  mixed ^= mixed >> 31;
  return mixed >> 9 | uint64_t{1} << 55;
}

}  // namespace xsched::cuda
