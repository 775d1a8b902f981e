// Memory in stream order. A pool gives memory at once and takes it back when the stream gets there.
#include <map>

#include "capture.h"
#include "context.h"
#include "driver.h"
#include "memory.h"
#include "stream.h"

namespace standin {
namespace {

struct Pool {
  cuuint64_t release_threshold = 0;
};

CUmemoryPool HandleOf(Pool& pool) { return reinterpret_cast<CUmemoryPool>(&pool); }

struct DevicePools {
  Pool standard;
  CUmemoryPool current = nullptr;
};
std::map<CUdevice, DevicePools>& PoolsOfDevices() {
  static auto* const pools = new std::map<CUdevice, DevicePools>;
  return *pools;
}

// Allocating in stream order is unsafe during other streams' captures, but may be captured itself.
CUresult RefuseUnlessCaptured(const Stream& stream) {
  return stream.capture == nullptr ? RefuseUnsafeUse() : CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream handle) {
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
  return result;
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool, CUstream stream) {
  return standin::cuMemAllocAsync(out, size, stream);
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
  *out = HandleOf(*new Pool);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool) { return CUDA_SUCCESS; }
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return CUDA_SUCCESS; }
CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    reinterpret_cast<Pool*>(pool)->release_threshold = *static_cast<cuuint64_t*>(value);
  }
  return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    *static_cast<int*>(value) = 1;
  } else {
    *static_cast<cuuint64_t*>(value) =
        attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? reinterpret_cast<Pool*>(pool)->release_threshold : 0;
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
