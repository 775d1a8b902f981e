// Memory: which belongs to the device, and which is pinned. Device memory is host memory, so the host can
// read device pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_api.h"
#include "device.h"

namespace standin {

struct Allocation {
  enum class Kind { kDevice, kManaged, kPool, kPinned, kRegistered };
  Kind kind;
  size_t size;
  Context* context;
  unsigned flags = 0;
  uint64_t id = 0;
};

size_t DeviceMemory();
// All below REQUIRE TheLock.
CUresult Allocate(Context& context, Allocation::Kind kind, size_t size, unsigned flags, uintptr_t* address);
void Release(uintptr_t address);
// Memory of a device without an address. False: there is not as much.
bool TakeDeviceMemory(size_t size);
void GiveDeviceMemoryBack(size_t size);
// The memory has gone back to its pool (pool.cc).
void PoolGets(uintptr_t address, size_t size);
// Null: it is of none.
CUmemoryPool PoolOfAllocation(uintptr_t address);
// The allocation that `address` lies in, and where that starts; null: none.
const Allocation* FindAllocation(uintptr_t address, uintptr_t* base = nullptr);
// True for memory that a device may access without the CPU: everything except the program's ordinary memory.
bool IsPinned(const void* address);

}  // namespace standin
