#include "memory.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "context.h"
#include "driver.h"

namespace standin {
namespace {

std::map<uintptr_t, Allocation>& Allocations() {
  static auto* const allocations = new std::map<uintptr_t, Allocation>;
  return *allocations;
}
size_t in_use = 0;  // of device memory, over all devices
uint64_t allocations_made = 0;

bool OnDevice(Allocation::Kind kind) {
  return kind == Allocation::Kind::kDevice || kind == Allocation::Kind::kManaged ||
         kind == Allocation::Kind::kPool;
}

CUresult AllocateCurrent(Allocation::Kind kind, size_t size, unsigned flags, uintptr_t* address) {
  Lock lock;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (context->primary_of_green != nullptr) context = context->primary_of_green;
  return Allocate(*context, kind, size, flags, address);
}

// Freeing waits for the work of the context, which may use the memory.
CUresult FreeAfterWork(uintptr_t address, bool host) {
  Lock lock;
  if (address == 0) return CUDA_SUCCESS;
  uintptr_t base = 0;
  const Allocation* found = FindAllocation(address, &base);
  if (found == nullptr || base != address) return CUDA_ERROR_INVALID_VALUE;
  if (host != (found->kind == Allocation::Kind::kPinned)) return CUDA_ERROR_INVALID_VALUE;
  if (found->kind != Allocation::Kind::kPool) AwaitContextAlone(lock, *found->context);
  Release(address);
  return CUDA_SUCCESS;
}

CUresult PointerAttribute(void* out, CUpointer_attribute attribute, uintptr_t address) {
  uintptr_t base = 0;
  const Allocation* found = FindAllocation(address, &base);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = OnDevice(found->kind);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) = HandleOf(found->context);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(out) = address;
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (found->kind == Allocation::Kind::kDevice) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(out) = reinterpret_cast<void*>(address);
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(out) = found->kind == Allocation::Kind::kManaged;
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(out) = found->id;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(out) = base;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(out) = found->size;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      for (int i = 0; i < DeviceCount(); ++i) {
        if (DeviceAt(i) == found->context->device) *static_cast<int*>(out) = i;
      }
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(out) = 1;
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(out) = PoolOfAllocation(base);
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

}  // namespace

size_t DeviceMemory() {
  const char* megabytes = std::getenv("STANDIN_CUDA_MEMORY_MB");
  return (megabytes ? std::strtoull(megabytes, nullptr, 10) : 1024) << 20;
}

CUresult Allocate(Context& context, Allocation::Kind kind, size_t size, unsigned flags, uintptr_t* address) {
  constexpr size_t kAlignment = 512;
  if (OnDevice(kind) && in_use + size > DeviceMemory()) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (OnDevice(kind)) in_use += size;
  *address = reinterpret_cast<uintptr_t>(memory);
  Allocations()[*address] = {kind, size, &context, flags, ++allocations_made};
  return CUDA_SUCCESS;
}

bool TakeDeviceMemory(size_t size) {
  if (in_use + size > DeviceMemory()) return false;
  in_use += size;
  return true;
}
void GiveDeviceMemoryBack(size_t size) { in_use -= size; }

void Release(uintptr_t address) {
  const auto found = Allocations().find(address);
  if (found == Allocations().end()) return;
  if (OnDevice(found->second.kind)) in_use -= found->second.size;
  if (found->second.kind == Allocation::Kind::kPool) PoolGets(address, found->second.size);
  if (found->second.kind != Allocation::Kind::kRegistered) std::free(reinterpret_cast<void*>(address));
  Allocations().erase(found);
}

const Allocation* FindAllocation(uintptr_t address, uintptr_t* base) {
  auto next = Allocations().upper_bound(address);
  if (next == Allocations().begin()) return nullptr;
  --next;
  if (address - next->first >= next->second.size) return nullptr;
  if (base != nullptr) *base = next->first;
  return &next->second;
}

bool IsPinned(const void* address) { return FindAllocation(reinterpret_cast<uintptr_t>(address)) != nullptr; }

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  Lock lock;
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *total = DeviceMemory();
  *free = *total - in_use;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  return AllocateCurrent(Allocation::Kind::kDevice, size, 0, reinterpret_cast<uintptr_t*>(out));
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned int) {
  *pitch = (width + 511) / 512 * 512;
  return standin::cuMemAlloc_v2(out, *pitch * height);
}
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags) {
  return AllocateCurrent(Allocation::Kind::kManaged, size, flags, reinterpret_cast<uintptr_t*>(out));
}
CUresult cuMemFree_v2(CUdeviceptr address) { return FreeAfterWork(address, false); }

CUresult cuMemHostAlloc(void** out, size_t size, unsigned int flags) {
  return AllocateCurrent(Allocation::Kind::kPinned, size, flags, reinterpret_cast<uintptr_t*>(out));
}
CUresult cuMemAllocHost_v2(void** out, size_t size) { return standin::cuMemHostAlloc(out, size, 0); }
CUresult cuMemFreeHost(void* address) { return FreeAfterWork(reinterpret_cast<uintptr_t>(address), true); }

CUresult cuMemHostRegister_v2(void* address, size_t size, unsigned int flags) {
  Lock lock;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (context->primary_of_green != nullptr) context = context->primary_of_green;
  const auto start = reinterpret_cast<uintptr_t>(address);
  const auto next = Allocations().lower_bound(start);
  if (FindAllocation(start) != nullptr || (next != Allocations().end() && next->first < start + size)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Allocations()[start] = {Allocation::Kind::kRegistered, size, context, flags, ++allocations_made};
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* address, size_t size, unsigned int flags) {
  return standin::cuMemHostRegister_v2(address, size, flags);
}

CUresult cuMemHostUnregister(void* address) {
  Lock lock;
  const auto start = reinterpret_cast<uintptr_t>(address);
  uintptr_t base = 0;
  const Allocation* found = FindAllocation(start, &base);
  if (found == nullptr || base != start || found->kind != Allocation::Kind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  AwaitContextAlone(lock, *found->context);
  Release(start);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* address, unsigned int flags) {
  Lock lock;
  const Allocation* found = FindAllocation(reinterpret_cast<uintptr_t>(address));
  if (out == nullptr || flags != 0 || found == nullptr || found->kind == Allocation::Kind::kDevice) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUdeviceptr>(address);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetFlags(unsigned int* flags, void* address) {
  Lock lock;
  const Allocation* found = FindAllocation(reinterpret_cast<uintptr_t>(address));
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->flags;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* start, size_t* size, CUdeviceptr address) {
  Lock lock;
  uintptr_t base = 0;
  const Allocation* found = FindAllocation(address, &base);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (start != nullptr) *start = base;
  if (size != nullptr) *size = found->size;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  Lock lock;
  return out == nullptr ? CUDA_ERROR_INVALID_VALUE : PointerAttribute(out, attribute, address);
}
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** out,
                                CUdeviceptr address) {
  Lock lock;
  for (unsigned i = 0; i < count; ++i) {
    // An unknown pointer is no error here: its attributes are null.
    if (PointerAttribute(out[i], attributes[i], address)) std::memset(out[i], 0, sizeof(int));
  }
  return CUDA_SUCCESS;
}
CUresult cuMemAdvise_v2(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) { return CUDA_SUCCESS; }

}  // namespace standin
