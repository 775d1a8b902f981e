// Memory in stream order. A pool gives memory at once and takes it back when the stream gets there. It keeps
// what it has reserved until it is trimmed, whatever its release threshold is. A call for a pool that is gone
// ends the program.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "capture.h"
#include "context.h"
#include "driver.h"
#include "memory.h"
#include "stream.h"

namespace standin {
namespace {

struct Pool {
  cuuint64_t release_threshold = 0;
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
};
constexpr cuuint64_t kPiece = 2 << 20;  // a pool grows by this

// The pools that the program has made and not destroyed.
std::set<const Pool*>& MadePools() {
  static auto* const pools = new std::set<const Pool*>;
  return *pools;
}

CUmemoryPool HandleOf(Pool& pool) { return reinterpret_cast<CUmemoryPool>(&pool); }

struct DevicePools {
  Pool standard;
  CUmemoryPool current = nullptr;
};
std::map<CUdevice, DevicePools>& PoolsOfDevices() {
  static auto* const pools = new std::map<CUdevice, DevicePools>;
  return *pools;
}

// The pool of each allocation.
std::map<uintptr_t, Pool*>& PoolsOfAllocations() {
  static auto* const pools = new std::map<uintptr_t, Pool*>;
  return *pools;
}

bool IsStandard(const Pool* pool) {
  for (const auto& [device, pools] : PoolsOfDevices()) {
    if (&pools.standard == pool) return true;
  }
  return false;
}

Pool& PoolOf(CUmemoryPool handle) {
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (MadePools().count(pool) != 0 || IsStandard(pool)) return *pool;
  std::fprintf(stderr, "stand-in: a call for a memory pool that is gone\n");
  std::abort();
}

CUresult AllocateFrom(Pool* pool, CUdeviceptr* out, size_t size, CUstream handle);

// Allocating in stream order is unsafe during other streams' captures, but may be captured itself.
CUresult RefuseUnlessCaptured(const Stream& stream) {
  return stream.capture == nullptr ? RefuseUnsafeUse() : CUDA_SUCCESS;
}

}  // namespace

void PoolGets(uintptr_t address, size_t size) {
  const auto found = PoolsOfAllocations().find(address);
  if (found == PoolsOfAllocations().end()) return;
  found->second->used -= size;
  PoolsOfAllocations().erase(found);
}

CUmemoryPool PoolOfAllocation(uintptr_t address) {
  const auto found = PoolsOfAllocations().find(address);
  return found == PoolsOfAllocations().end() ? nullptr : HandleOf(*found->second);
}

namespace {

// Null: the current one of the stream's device.
CUresult AllocateFrom(Pool* pool, CUdeviceptr* out, size_t size, CUstream handle) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult refused = RefuseUnlessCaptured(*stream)) return refused;
  uintptr_t address = 0;
  if (const CUresult full = Allocate(*stream->context, Allocation::Kind::kPool, size, 0, &address))
    return full;
  const CUresult result = Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_MEM_ALLOC, {}});
  if (result != CUDA_SUCCESS) Release(address);
  *out = result == CUDA_SUCCESS ? address : 0;
  if (result != CUDA_SUCCESS || stream->capture != nullptr) return result;
  for (int i = 0; pool == nullptr && i < DeviceCount(); ++i) {
    if (DeviceAt(i) != stream->context->device) continue;
    DevicePools& pools = PoolsOfDevices()[i];
    pool = pools.current ? reinterpret_cast<Pool*>(pools.current) : &pools.standard;
  }
  PoolsOfAllocations()[address] = pool;
  pool->used += size;
  pool->reserved = std::max(pool->reserved, (pool->used + kPiece - 1) / kPiece * kPiece);
  return result;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
  return AllocateFrom(nullptr, out, size, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool, CUstream stream) {
  return AllocateFrom(reinterpret_cast<Pool*>(pool), out, size, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (const CUresult refused = RefuseUnlessCaptured(*stream)) return refused;
  if (FindAllocation(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    // A graph's memory keeps its address over all launches.
    return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_MEM_FREE, {}});
  }
  return Submit(lock, *stream,
                {CU_GRAPH_NODE_TYPE_MEM_FREE, {{Step::Kind::kAction, [=] { Release(address); }}}});
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps*) {
  Lock lock;
  auto* made = new Pool;
  MadePools().insert(made);
  *out = HandleOf(*made);
  return CUDA_SUCCESS;
}
// Its memory stays until what was allocated from it is freed.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  Lock lock;
  Pool& pool = PoolOf(handle);
  if (IsStandard(&pool)) return CUDA_ERROR_INVALID_VALUE;
  MadePools().erase(&pool);
  if (pool.used == 0) delete &pool;
  return CUDA_SUCCESS;
}
CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  Lock lock;
  Pool& pool = PoolOf(handle);
  const cuuint64_t needed = (std::max<cuuint64_t>(pool.used, keep) + kPiece - 1) / kPiece * kPiece;
  pool.reserved = std::min(pool.reserved, needed);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    Lock lock;
    PoolOf(pool).release_threshold = *static_cast<cuuint64_t*>(value);
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Lock lock;
  const Pool& of = PoolOf(pool);
  if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    *static_cast<int*>(value) = 1;
    return CUDA_SUCCESS;
  }
  cuuint64_t& number = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      number = of.release_threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      number = of.reserved;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      number = of.used;
      break;
    default:
      number = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *out = HandleOf(PoolsOfDevices()[device].standard);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  DevicePools& pools = PoolsOfDevices()[device];
  *out = pools.current ? pools.current : HandleOf(pools.standard);
  return CUDA_SUCCESS;
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  PoolsOfDevices()[device].current = pool;
  return CUDA_SUCCESS;
}

}  // namespace standin
