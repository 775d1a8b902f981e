// The kernels that the runtime itself launches for copies, fills and stream memory operations. It compiles
// them from its own source. Their parameters changed over time, and the number of parameters identifies the
// version.
#include <array>
#include <cstdint>
#include <utility>

#include "kernels.h"
#include "signals.h"

namespace standin_hsa {
namespace {

using Bytes = unsigned char*;
using Extent = std::array<uint64_t, 4>;

void Fill(Bytes to, const unsigned char* pattern, size_t pattern_size, size_t times) {
  for (size_t i = 0; i < times; ++i) std::memcpy(to + i * pattern_size, pattern, pattern_size);
}

// The buffer has bytes, or elements of 2, 4 or 8 bytes: one of four pointers is set.
std::pair<Bytes, size_t> BufferAndElementSize(const Arguments& a) {
  for (size_t i = 0; i < 4; ++i) {
    if (auto buffer = a.Nth<Bytes>(i)) return {buffer, size_t{1} << i};
  }
  return {nullptr, 1};
}

// 5.x: (uchar*, ushort*, uint*, ulong*, pattern, patternSize, offset, size)
// 6.x: (buf, pattern, pattern_size, alignment, end_ptr, next_chunk, …)
void FillBuffer(const Arguments& a) {
  if (a.count() == 8) {
    auto [buffer, element] = BufferAndElementSize(a);
    const size_t pattern_size = a.Nth<uint32_t>(5) * element;
    Fill(buffer + a.Nth<uint64_t>(6) * element, a.Nth<Bytes>(4), pattern_size, a.Nth<uint64_t>(7));
  } else {
    const auto buffer = a.Nth<Bytes>(0);
    const size_t pattern_size = size_t{a.Nth<uint32_t>(2)} * a.Nth<uint32_t>(3);
    Fill(buffer, a.Nth<Bytes>(1), pattern_size,
         (a.Nth<uint64_t>(4) - reinterpret_cast<uint64_t>(buffer)) / pattern_size);
  }
}
// (uchar*, ushort*, uint*, ulong*, pattern, patternSize, offset, width, height, pitch), in elements
void FillBuffer2D(const Arguments& a) {
  auto [buffer, element] = BufferAndElementSize(a);
  const size_t pattern_size = a.Nth<uint32_t>(5) * element;
  for (uint64_t y = 0; y < a.Nth<uint64_t>(8); ++y) {
    const Bytes row = buffer + (a.Nth<uint64_t>(6) + y * a.Nth<uint64_t>(9)) * element;
    // Each element of a row begins a pattern, as on the GPU.
    for (uint64_t x = 0; x < a.Nth<uint64_t>(7); ++x)
      std::memcpy(row + x * element, a.Nth<Bytes>(4), pattern_size);
  }
}
// 5.x: (src, dst, srcOrigin, dstOrigin, size, remain): size - 1 words and `remain` bytes
// 6.x: (src, dst, size, remainder, aligned_size, end_ptr, …)
void CopyBuffer(const Arguments& a) {
  if (a.count() == 6) {
    std::memmove(a.Nth<Bytes>(1) + a.Nth<uint64_t>(3), a.Nth<Bytes>(0) + a.Nth<uint64_t>(2),
                 (a.Nth<uint64_t>(4) - 1) * 4 + a.Nth<uint32_t>(5));
  } else {
    std::memmove(a.Nth<Bytes>(1), a.Nth<Bytes>(0), a.Nth<uint64_t>(2));
  }
}
// (src, dst, srcOrigin, dstOrigin, size, alignment), in elements of `alignment`
void CopyBufferAligned(const Arguments& a) {
  const uint64_t element = a.Nth<uint32_t>(5);
  std::memmove(a.Nth<Bytes>(1) + a.Nth<uint64_t>(3) * element, a.Nth<Bytes>(0) + a.Nth<uint64_t>(2) * element,
               a.Nth<uint64_t>(4) * element);
}
// (src, dst, srcRect, dstRect, size): rects are {row pitch, slice pitch, begin}, in elements
void CopyRect(const Arguments& a, uint64_t element) {
  const auto from = a.Nth<Extent>(2), to = a.Nth<Extent>(3), size = a.Nth<Extent>(4);
  for (uint64_t z = 0; z < size[2]; ++z) {
    for (uint64_t y = 0; y < size[1]; ++y) {
      std::memmove(a.Nth<Bytes>(1) + (to[2] + y * to[0] + z * to[1]) * element,
                   a.Nth<Bytes>(0) + (from[2] + y * from[0] + z * from[1]) * element, size[0] * element);
    }
  }
}
void CopyBufferRect(const Arguments& a) { CopyRect(a, 1); }
void CopyBufferRectAligned(const Arguments& a) { CopyRect(a, a.Nth<Extent>(4)[3] == 16 ? 16 : 4); }

// (uint*, ulong*, value, …): one of the pointers is set
void WriteValue(const Arguments& a) {
  if (auto* word = a.Nth<uint32_t*>(0)) {
    __atomic_store_n(word, static_cast<uint32_t>(a.Nth<uint64_t>(2)), __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(a.Nth<uint64_t*>(1), a.Nth<uint64_t>(2), __ATOMIC_RELEASE);
  }
  Signals().changed.notify_all();
}
// (uint*, ulong*, value, compareOp, mask)
void WaitValue(const Arguments& a) {
  const uint64_t wanted = a.Nth<uint64_t>(2), mask = a.Nth<uint64_t>(4);
  AwaitByLooking([&] {
    const auto* word = a.Nth<const uint32_t*>(0);
    const uint64_t value = word != nullptr ? __atomic_load_n(word, __ATOMIC_ACQUIRE)
                                           : __atomic_load_n(a.Nth<const uint64_t*>(1), __ATOMIC_ACQUIRE);
    switch (a.Nth<uint64_t>(3)) {
      case 0:
        return (value & mask) >= wanted;
      case 1:
        return (value & mask) == wanted;
      case 2:
        return (value & mask & wanted) != 0;
      default:
        return ((value | wanted) & mask) != mask;
    }
  });
}
void Nothing(const Arguments&) {}

constexpr std::pair<std::string_view, KernelFunction> kKernels[] = {
    {"__amd_rocclr_fillBufferAligned", FillBuffer},
    {"__amd_rocclr_fillBufferAligned2D", FillBuffer2D},
    {"__amd_rocclr_copyBuffer", CopyBuffer},
    {"__amd_rocclr_copyBufferAligned", CopyBufferAligned},
    {"__amd_rocclr_copyBufferRect", CopyBufferRect},
    {"__amd_rocclr_copyBufferRectAligned", CopyBufferRectAligned},
    {"__amd_rocclr_streamOpsWrite", WriteValue},
    {"__amd_rocclr_streamOpsWait", WaitValue},
    {"__amd_rocclr_initHeap", Nothing},
    {"__amd_rocclr_gwsInit", Nothing},
    {"__amd_rocclr_scheduler", Nothing}};

}  // namespace

KernelFunction FindBlitKernel(std::string_view name) {
  for (const auto& [known, function] : kKernels) {
    if (name == known) return function;
  }
  return nullptr;
}

}  // namespace standin_hsa
