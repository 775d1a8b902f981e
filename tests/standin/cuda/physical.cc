// Memory without an address, and where it is mapped. It ends when it has no handle, and is mapped nowhere.
// Nothing can be read or written there.
#include <map>

#include "context.h"
#include "driver.h"
#include "memory.h"

namespace standin {
namespace {

struct Physical {
  size_t size;
  bool on_device;
  unsigned handles = 1;
  unsigned mappings = 0;
};
struct Mapping {
  Physical* physical;
  size_t size;
};
std::map<uintptr_t, Mapping>& Mappings() {
  static auto* const mappings = new std::map<uintptr_t, Mapping>;
  return *mappings;
}
uintptr_t next_address = uintptr_t{1} << 44;

void EndIfUnused(Physical* physical) {
  if (physical->handles != 0 || physical->mappings != 0) return;
  if (physical->on_device) GiveDeviceMemoryBack(physical->size);
  delete physical;
}

Physical* Of(CUmemGenericAllocationHandle handle) { return reinterpret_cast<Physical*>(handle); }

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *out = 2 << 20;
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* properties,
                     unsigned long long) {
  Lock lock;
  if (out == nullptr || size == 0 || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (on_device && !TakeDeviceMemory(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(new Physical{size, on_device});
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Lock lock;
  if (handle == 0) return CUDA_ERROR_INVALID_VALUE;
  --Of(handle)->handles;
  EndIfUnused(Of(handle));
  return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  Lock lock;
  const auto found = Mappings().find(reinterpret_cast<uintptr_t>(address));
  if (found == Mappings().end()) return CUDA_ERROR_INVALID_VALUE;
  ++found->second.physical->handles;
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(found->second.physical);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t, CUdeviceptr, unsigned long long) {
  Lock lock;
  *out = next_address;
  next_address += size;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  Lock lock;
  if (handle == 0 || Mappings().contains(address)) return CUDA_ERROR_INVALID_VALUE;
  Mappings()[address] = {Of(handle), size};
  ++Of(handle)->mappings;
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  Lock lock;
  for (uintptr_t at = address; at < address + size;) {
    const auto found = Mappings().find(at);
    if (found == Mappings().end()) return CUDA_ERROR_INVALID_VALUE;
    at += found->second.size;
    --found->second.physical->mappings;
    EndIfUnused(found->second.physical);
    Mappings().erase(found);
  }
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) { return CUDA_SUCCESS; }

}  // namespace standin
