#include "shim/cuda/memory.h"

#include "hal/cuda/capture_mode.h"
#include "hal/cuda/device.h"
#include "hal/cuda/green_contexts.h"
#include "hal/cuda/stream_context.h"
#include "shim/common/capture_scopes.h"
#include "shim/cuda/contexts.h"

namespace xsched::cuda {
namespace {

// Of one element. 0 for formats of video, whose planes differ in size.
uint64_t BitsPerChannel(CUarray_format format) {
  switch (static_cast<int>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 32;
    default:
      return 0;
  }
}

// Formats that have another number of bits per element than channels times bits per channel.
uint64_t BitsPerElement(CUarray_format format, unsigned channels) {
  if (const uint64_t bits = BitsPerChannel(format)) return bits * channels;
  switch (static_cast<int>(format)) {
    case 0x91:  // block-compressed: BC1, BC4
    case 0x92:
    case 0x97:
    case 0x98:
      return 4;
    case 0x93:  // BC2, BC3, BC5, BC6H, BC7
    case 0x94:
    case 0x95:
    case 0x96:
    case 0x99:
    case 0x9a:
    case 0x9b:
    case 0x9c:
    case 0x9d:
    case 0x9e:
    case 0xc0:  // normalized: 8 bits, 1 channel
    case 0xc6:
      return 8;
    case 0xb0:  // NV12
      return 12;
    case 0xc1:  // 8 bits, 2 channels; 16 bits, 1 channel
    case 0xc3:
    case 0xc7:
    case 0xc9:
      return 16;
    case 0xc5:  // 16 bits, 4 channels
    case 0xcb:
      return 64;
    default:
      return 32;
  }
}

uint64_t SizeOf(uint64_t width, uint64_t height, uint64_t depth, CUarray_format format, unsigned channels) {
  const uint64_t elements = width * std::max<uint64_t>(height, 1) * std::max<uint64_t>(depth, 1);
  return (elements * BitsPerElement(format, channels) + 7) / 8;
}

// REQUIRES: `context`, or a green context of its device, is current.
shim::MemoryHome* HomeOfContext(const Call& call, CUcontext context) {
  const uint64_t key = HomeOf(context);
  if (shim::MemoryHome* known = shim::FindMemoryHome(key)) [[likely]]
    return known;
  CUdevice device = 0;
  DeviceIdentity identity;
  const Functions& next = call.next();
  if (next.cuCtxGetDevice(&device) != CUDA_SUCCESS || !IdentifyDevice(next, device, &identity))
    return nullptr;
  return shim::AddMemoryHome(key, device, identity.device);
}

// Memory that ends with no context. Its key is no address.
shim::MemoryHome* HomeOfDevice(const Call& call, CUdevice device) {
  if (device < 0) return nullptr;
  const uint64_t key = uint64_t{1} << 63 | static_cast<uint32_t>(device);
  if (shim::MemoryHome* known = shim::FindMemoryHome(key)) return known;
  DeviceIdentity identity;
  return IdentifyDevice(call.next(), device, &identity) ? shim::AddMemoryHome(key, device, identity.device)
                                                        : nullptr;
}

}  // namespace

shim::MemoryHome* Memory::HomeOf(const Call& call) {
  const CUcontext context = CudaOwnerOf(CurrentContext());  // memory ends with the owner
  return context == nullptr ? nullptr : HomeOfContext(call, context);
}

shim::MemoryHome* Memory::HomeOf(const Call& call, CUstream stream) {
  if (IsDefaultStream(stream)) return HomeOf(call);
  if (const shim::Stream* known = shim::FindStream(Platform::KeyOf(call, stream))) {
    if (shim::MemoryHome* home = shim::FindMemoryHome(known->owner.load(std::memory_order_relaxed)))
      return home;
  }
  preempt::ReentrancyGuard guard;
  RelaxedCaptureMode relaxed(call.next());
  const StreamContext context(call.next(), stream);
  return context.get() == nullptr ? nullptr : HomeOfContext(call, CudaOwnerOf(context.get()));
}

shim::MemoryHome* Memory::HomeOfPhysical(const Call& call, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
  return HomeOfDevice(call, properties->location.id);
}

int Memory::DeviceOf(const Call& call, CUdevice device) {
  const shim::MemoryHome* home = HomeOfDevice(call, device);
  return home == nullptr ? -1 : home->device.load(std::memory_order_relaxed);
}

int Memory::OrdinalOf(const CUmemPoolProps* properties) {
  return properties == nullptr || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE
             ? -1
             : properties->location.id;
}

uint64_t Memory::CurrentPool(const Call& call, CUdevice device) {
  CUmemoryPool pool = nullptr;
  const Functions& next = call.next();
  if (next.cuDeviceGetMemPool == nullptr || next.cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS) return 0;
  return reinterpret_cast<uint64_t>(pool);
}

bool Memory::ReadPool(const Call& call, const shim::MemoryPool& pool, uint64_t* reserved, uint64_t* used) {
  const Functions& next = call.next();
  if (pool.of_graphs.load(std::memory_order_relaxed)) {
    const CUdevice device = pool.ordinal.load(std::memory_order_relaxed);
    const auto ask = next.cuDeviceGetGraphMemAttribute;
    return ask != nullptr && ask(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, reserved) == CUDA_SUCCESS &&
           (used == nullptr || ask(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, used) == CUDA_SUCCESS);
  }
  const auto handle = reinterpret_cast<CUmemoryPool>(pool.key.load(std::memory_order_relaxed));
  const auto ask = next.cuMemPoolGetAttribute;
  return ask != nullptr && ask(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved) == CUDA_SUCCESS &&
         (used == nullptr || ask(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used) == CUDA_SUCCESS);
}

// It may wait for everything, and it must not spoil a capture.
void Memory::TrimPool(const Call& call, const shim::MemoryPool& pool) {
  const Functions& next = call.next();
  RelaxedCaptureMode relaxed(next);
  preempt::Barrier barrier;
  if (pool.of_graphs.load(std::memory_order_relaxed)) {
    if (next.cuDeviceGraphMemTrim != nullptr)
      next.cuDeviceGraphMemTrim(pool.ordinal.load(std::memory_order_relaxed));
  } else if (next.cuMemPoolTrimTo != nullptr) {
    next.cuMemPoolTrimTo(reinterpret_cast<CUmemoryPool>(pool.key.load(std::memory_order_relaxed)), 0);
  }
}

bool Memory::IsCapturing(const Call& call, CUstream stream) {
  return shim::IsCapturing<Platform>(call, stream);
}

uint64_t Memory::SizeOfArray(const CUDA_ARRAY_DESCRIPTOR* array) {
  return array == nullptr ? 0 : SizeOf(array->Width, array->Height, 1, array->Format, array->NumChannels);
}

uint64_t Memory::SizeOfArray(const CUDA_ARRAY_DESCRIPTOR_v1* array) {
  return array == nullptr ? 0 : SizeOf(array->Width, array->Height, 1, array->Format, array->NumChannels);
}

uint64_t Memory::SizeOfArray(const CUDA_ARRAY3D_DESCRIPTOR_v1* array) {
  return array == nullptr
             ? 0
             : SizeOf(array->Width, array->Height, array->Depth, array->Format, array->NumChannels);
}

uint64_t Memory::SizeOfArray(const CUDA_ARRAY3D_DESCRIPTOR* array, unsigned levels) {
  if (array == nullptr || (array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
    return 0;
  // Layers of an array do not become fewer from level to level.
  const bool layered = (array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  uint64_t size = 0;
  for (unsigned level = 0; level < levels && level < 32; ++level) {
    size += SizeOf(std::max<uint64_t>(array->Width >> level, 1), array->Height >> level,
                   layered ? array->Depth : array->Depth >> level, array->Format, array->NumChannels);
  }
  return size;
}

}  // namespace xsched::cuda
