// Memory: what belongs to the device, what is pinned. Device memory is host memory, so device pointers can be
// read.
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
// The allocation that `address` lies in, and where that starts; null: none.
const Allocation* FindAllocation(uintptr_t address, uintptr_t* base = nullptr);
// Memory that a device may read or write without the CPU in between: everything but the program's ordinary
// memory.
bool IsPinned(const void* address);

}  // namespace standin
