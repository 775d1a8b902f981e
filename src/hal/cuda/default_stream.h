// The default streams have no handle of their own: 0 and 1 mean the current context's, 2 the current
// context's and calling thread's. Here each gets a number that is its alone, and no stream's handle: those
// are addresses of user space, which end below bit 47.
#pragma once

#include <cstdint>

namespace xsched::cuda {

constexpr uint64_t LegacyStreamKey(uint64_t context) { return context | uint64_t{1} << 48; }

}  // namespace xsched::cuda
