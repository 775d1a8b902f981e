#include "shim/hip/memory.h"

#include "hal/hip/device.h"
#include "hal/hip/last_error.h"
#include "hal/hip/own_calls.h"
#include "shim/common/capture_scopes.h"

namespace xsched::hip {
namespace {

uint64_t SizeOf(hipExtent extent, uint64_t bits, unsigned levels) {
  uint64_t size = 0;
  for (unsigned level = 0; level < levels && level < 32; ++level) {
    size += std::max<uint64_t>(extent.width >> level, 1) * std::max<uint64_t>(extent.height >> level, 1) *
            std::max<uint64_t>(extent.depth >> level, 1) * bits / 8;
  }
  return size;
}

uint64_t BitsOf(unsigned format) {
  switch (format) {
    case 0x01:  // 8 bits
    case 0x08:
      return 8;
    case 0x02:  // 16 bits
    case 0x09:
    case 0x10:
      return 16;
    default:
      return 32;
  }
}

shim::MemoryHome* HomeOfDevice(const Call& call, int device) {
  if (device < 0) return nullptr;
  const Instance& instance = call.instance();
  const uint64_t key = NullStreamKey(instance.runtime().index(), device);
  if (shim::MemoryHome* known = shim::FindMemoryHome(key)) [[likely]]
    return known;
  preempt::ReentrancyGuard guard;
  const Functions& next = instance.runtime().next();
  KeepLastError keep(next);
  DeviceIdentity identity;
  return IdentifyDevice(next, device, &identity) ? shim::AddMemoryHome(key, device, identity.device)
                                                 : nullptr;
}

}  // namespace

shim::MemoryHome* Memory::HomeOf(const Call& call) {
  return HomeOfDevice(call, CurrentDevice(call.instance()));
}

shim::MemoryHome* Memory::HomeOf(const Call& call, hipStream_t stream) {
  return HomeOfDevice(call, DeviceOfStream(call.instance(), stream));
}

shim::MemoryHome* Memory::HomeOfPhysical(const Call& call, const hipMemAllocationProp* properties) {
  if (properties != nullptr && properties->location.type == kHipMemLocationTypeDevice)
    return HomeOfDevice(call, properties->location.id);
  return HomeOf(call);
}

int Memory::DeviceOf(const Call& call, int device) {
  const shim::MemoryHome* home = HomeOfDevice(call, device);
  return home == nullptr ? -1 : home->device.load(std::memory_order_relaxed);
}

int Memory::OrdinalOf(const hipMemPoolProps* properties) {
  return properties == nullptr || properties->location.type != kHipMemLocationTypeDevice
             ? -1
             : properties->location.id;
}

uint64_t Memory::CurrentPool(const Call& call, int device) {
  preempt::ReentrancyGuard guard;
  const Functions& next = call.instance().runtime().next();
  KeepLastError keep(next);
  void* pool = nullptr;
  if (next.hipDeviceGetMemPool == nullptr || next.hipDeviceGetMemPool(&pool, device) != hipSuccess) return 0;
  return reinterpret_cast<uint64_t>(pool);
}

bool Memory::ReadPool(const Call& call, const shim::MemoryPool& pool, uint64_t* reserved, uint64_t* used) {
  preempt::ReentrancyGuard guard;
  const Functions& next = call.instance().runtime().next();
  KeepLastError keep(next);
  if (pool.of_graphs.load(std::memory_order_relaxed)) {
    const int device = pool.ordinal.load(std::memory_order_relaxed);
    return next.hipDeviceGetGraphMemAttribute != nullptr &&
           next.hipDeviceGetGraphMemAttribute(device, kHipGraphMemReserved, reserved) == hipSuccess &&
           (used == nullptr ||
            next.hipDeviceGetGraphMemAttribute(device, kHipGraphMemUsed, used) == hipSuccess);
  }
  auto* handle = reinterpret_cast<void*>(pool.key.load(std::memory_order_relaxed));
  return next.hipMemPoolGetAttribute != nullptr &&
         next.hipMemPoolGetAttribute(handle, kHipMemPoolReserved, reserved) == hipSuccess &&
         (used == nullptr || next.hipMemPoolGetAttribute(handle, kHipMemPoolUsed, used) == hipSuccess);
}

// It may wait for everything, and it must not spoil a capture.
void Memory::TrimPool(const Call& call, const shim::MemoryPool& pool) {
  const Functions& next = call.instance().runtime().next();
  const OwnCalls ours(next);
  preempt::Barrier barrier;
  if (pool.of_graphs.load(std::memory_order_relaxed)) {
    if (next.hipDeviceGraphMemTrim != nullptr)
      next.hipDeviceGraphMemTrim(pool.ordinal.load(std::memory_order_relaxed));
  } else if (next.hipMemPoolTrimTo != nullptr) {
    next.hipMemPoolTrimTo(reinterpret_cast<void*>(pool.key.load(std::memory_order_relaxed)), 0);
  }
}

bool Memory::IsCapturing(const Call& call, hipStream_t stream) {
  return shim::IsCapturing<Platform>(call, stream);
}

uint64_t WholeFreeing::BeginOf(const Call& call, void* memory) {
  const uint64_t key = shim::KeyOfMemory(memory);
  if (key == 0 || !preempt::MemoryIsCounted() || !Memory::Counts(call) || shim::linear_memory.Has(key))
    return key;
  const Functions& next = call.instance().runtime().next();
  const OwnCalls ours(next);
  hipDeviceptr_t begin = nullptr;
  size_t size = 0;
  return next.hipMemGetAddressRange != nullptr &&
                 next.hipMemGetAddressRange(&begin, &size, memory) == hipSuccess
             ? shim::KeyOfMemory(begin)
             : key;
}

uint64_t SizeOfArray(const hipChannelFormatDesc* format, hipExtent extent, unsigned levels) {
  if (format == nullptr) return 0;
  const int bits = format->x + format->y + format->z + format->w;
  return bits <= 0 ? 0 : SizeOf(extent, static_cast<uint64_t>(bits), levels);
}

uint64_t SizeOfArray(const HIP_ARRAY_DESCRIPTOR* array) {
  return array == nullptr
             ? 0
             : SizeOf({array->Width, array->Height, 0}, BitsOf(array->Format) * array->NumChannels, 1);
}

uint64_t SizeOfArray(const HIP_ARRAY3D_DESCRIPTOR* array, unsigned levels) {
  return array == nullptr ? 0
                          : SizeOf({array->Width, array->Height, array->Depth},
                                   BitsOf(array->Format) * array->NumChannels, levels);
}

hipError_t OutOfMemory(const Call& call) {
  const Functions& next = call.instance().runtime().next();
  // A capture does not survive such a call.
  if (next.hipMalloc == nullptr || shim::AnyCapture()) return hipErrorOutOfMemory;
  constexpr size_t kMoreThanThereIs = size_t{1} << 62;
  preempt::ReentrancyGuard guard;
  void* none = nullptr;
  next.hipMalloc(&none, kMoreThanThereIs);
  return hipErrorOutOfMemory;
}

}  // namespace xsched::hip
