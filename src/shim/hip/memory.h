// The scopes of calls on HIP's memory, under a limit.
#pragma once

#include <algorithm>

#include "shim/common/memory_scopes.h"
#include "shim/hip/platform.h"

namespace xsched::hip {

struct Memory {
  using Call = hip::Call;
  using Result = hipError_t;
  static constexpr hipError_t kSuccess = hipSuccess;

  static bool Counts(const Call& call) { return call.is_outermost(); }
  static shim::MemoryHome* HomeOf(const Call& call);
  static shim::MemoryHome* HomeOf(const Call& call, hipStream_t stream);
  static shim::MemoryHome* HomeOfPhysical(const Call& call, const hipMemAllocationProp* properties);
  static int DeviceOf(const Call& call, int device);
  static int RuntimeOf(const Call& call) { return call.instance().runtime().index(); }
  static int OrdinalOf(const hipMemPoolProps* properties);
  static uint64_t CurrentPool(const Call& call, int device);
  static bool ReadPool(const Call& call, const shim::MemoryPool& pool, uint64_t* reserved, uint64_t* used);
  static void TrimPool(const Call& call, const shim::MemoryPool& pool);
  static bool IsCapturing(const Call& call, hipStream_t stream);
  static uint64_t SizeOfArray(uint64_t size) { return size; }
};

using Allocation = shim::Allocation<Memory>;
using PitchedAllocation = shim::PitchedAllocation<Memory>;
using ArrayAllocation = shim::ArrayAllocation<Memory>;
using Freeing = shim::Freeing<Memory>;
using ArrayFreeing = shim::ArrayFreeing<Memory>;
using PhysicalAllocation = shim::PhysicalAllocation<Memory>;
using PhysicalRelease = shim::PhysicalRelease<Memory>;
using PhysicalRetention = shim::PhysicalRetention<Memory>;
using Mapping = shim::Mapping<Memory>;
using Unmapping = shim::Unmapping<Memory>;
using PoolAllocation = shim::PoolAllocation<Memory>;
using PoolCreation = shim::PoolCreation<Memory>;
using PoolDestruction = shim::PoolDestruction<Memory>;
using PoolChoice = shim::PoolChoice<Memory>;
using PoolTrim = shim::PoolTrim<Memory>;
using GraphMemory = shim::GraphMemory<Memory>;
using MemoryInfo = shim::MemoryInfo<Memory>;
using DeviceTotal = shim::DeviceTotal<Memory>;

// The scope of hipFree. It frees a whole allocation, also by an address inside of it.
class WholeFreeing : public shim::FreeingFrom<Memory> {
 public:
  WholeFreeing(const Call& call, void* memory)
      : FreeingFrom(call, shim::linear_memory, BeginOf(call, memory)) {}

 private:
  static uint64_t BeginOf(const Call& call, void* memory);
};

// The scope of hipMalloc3D.
class VolumeAllocation : public Allocation {
 public:
  VolumeAllocation(const Call& call, hipExtent extent)
      : Allocation(call,
                   extent.width * std::max<size_t>(extent.height, 1) * std::max<size_t>(extent.depth, 1)),
        rows_(std::max<size_t>(extent.height, 1) * std::max<size_t>(extent.depth, 1)) {}

  void Finish(hipError_t result, const hipPitchedPtr* made) const {
    const bool known = result == hipSuccess && made != nullptr;
    FinishIn(shim::linear_memory, result, known ? &made->ptr : nullptr, known ? made->pitch * rows_ : size());
  }

 private:
  uint64_t rows_;
};

// Without the room that the runtime adds between rows.
uint64_t SizeOfArray(const hipChannelFormatDesc* format, hipExtent extent, unsigned levels);
uint64_t SizeOfArray(const HIP_ARRAY_DESCRIPTOR* array);
uint64_t SizeOfArray(const HIP_ARRAY3D_DESCRIPTOR* array, unsigned levels);

inline uint64_t SizeOfNode(const hipMemAllocNodeParams* node) { return node == nullptr ? 0 : node->bytesize; }

// What a refused call returns. The runtime itself refuses an impossible allocation, so that it is the
// thread's last error as well.
hipError_t OutOfMemory(const Call& call);

}  // namespace xsched::hip
