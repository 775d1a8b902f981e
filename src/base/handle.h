// How the API's handles are packed, from the highest bits to the lowest:
//
//   kind         8 bits   tells the handles of one table from those of another
//   generation  32 bits   which of the objects that have had the index
//   index + 1   24 bits   so 0 is no handle
#pragma once

#include <cstdint>

namespace xsched {

inline constexpr uint32_t kMaxHandleIndex = (1u << 24) - 2;

// REQUIRES: index <= kMaxHandleIndex.
constexpr uint64_t PackHandle(uint8_t kind, uint32_t generation, uint32_t index) {
  return uint64_t{kind} << 56 | uint64_t{generation} << 24 | (index + 1);
}
constexpr uint8_t HandleKind(uint64_t handle) { return static_cast<uint8_t>(handle >> 56); }
constexpr uint32_t HandleGeneration(uint64_t handle) { return static_cast<uint32_t>(handle >> 24); }
// Of what is no handle: more than kMaxHandleIndex.
constexpr uint32_t HandleIndex(uint64_t handle) { return static_cast<uint32_t>(handle & 0xffffff) - 1; }

}  // namespace xsched
