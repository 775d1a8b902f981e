// The scopes of calls on CUDA's memory, under a limit.
#pragma once

#include <algorithm>

#include "shim/common/memory_scopes.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

struct Memory {
  using Call = cuda::Call;
  using Result = CUresult;
  static constexpr CUresult kSuccess = CUDA_SUCCESS;

  static bool Counts(const Call&) { return true; }
  static shim::MemoryHome* HomeOf(const Call& call);
  static shim::MemoryHome* HomeOf(const Call& call, CUstream stream);
  static shim::MemoryHome* HomeOfPhysical(const Call& call, const CUmemAllocationProp* properties);
  static int DeviceOf(const Call& call, CUdevice device);
  static int RuntimeOf(const Call&) { return 0; }
  static int OrdinalOf(const CUmemPoolProps* properties);
  static uint64_t CurrentPool(const Call& call, CUdevice device);
  static bool ReadPool(const Call& call, const shim::MemoryPool& pool, uint64_t* reserved, uint64_t* used);
  static void TrimPool(const Call& call, const shim::MemoryPool& pool);
  static bool IsCapturing(const Call& call, CUstream stream);

  // Without the room that the driver adds between rows. Arrays whose memory is mapped later have none.
  static uint64_t SizeOfArray(const CUDA_ARRAY_DESCRIPTOR* array);
  static uint64_t SizeOfArray(const CUDA_ARRAY_DESCRIPTOR_v1* array);
  static uint64_t SizeOfArray(const CUDA_ARRAY3D_DESCRIPTOR* array, unsigned levels = 1);
  static uint64_t SizeOfArray(const CUDA_ARRAY3D_DESCRIPTOR_v1* array);
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

// The memory that a node of a graph asks for.
inline uint64_t SizeOfNode(const CUDA_MEM_ALLOC_NODE_PARAMS* node) {
  return node == nullptr ? 0 : node->bytesize;
}
inline uint64_t SizeOfNode(const CUgraphNodeParams* node) {
  return node == nullptr || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ? 0 : node->alloc.bytesize;
}

}  // namespace xsched::cuda
