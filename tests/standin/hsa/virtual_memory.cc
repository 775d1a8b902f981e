// Virtual memory: addresses are reserved, memory is made, and memory is mapped to addresses. Pools of
// runtimes are made of these. Debian 12's headers do not know them.
#include <hsa/hsa_ext_amd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "entry.h"
#include "memory.h"

namespace standin_hsa {
namespace {

// Memory with a handle. It ends when nobody has a handle, and it is mapped nowhere.
struct Made {
  hsa_agent_t owner;
  size_t size;
  int file;
  int handles;
  int mappings;
};
struct Mapping {
  size_t size;
  uint64_t handle;
};

class VirtualMemory {
 public:
  static void* Reserve(size_t size) {
    void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? nullptr : address;
  }

  // 0: there is no such memory left.
  uint64_t Make(hsa_agent_t owner, size_t size) {
    std::lock_guard guard(lock_);
    if (!TakeMemory(owner, size)) return 0;
    const int file = memfd_create("standin-hsa", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return 0;
    made_[++newest_] = {owner, size, file, 1, 0};
    return newest_;
  }
  bool Release(uint64_t handle) {
    std::lock_guard guard(lock_);
    const auto made = made_.find(handle);
    if (made == made_.end() || made->second.handles == 0) return false;
    --made->second.handles;
    EndIfUnused(made);
    return true;
  }
  // The handle of what is mapped there; 0: nothing is.
  uint64_t Retain(void* address) {
    std::lock_guard guard(lock_);
    const auto mapping = mappings_.find(address);
    if (mapping == mappings_.end()) return 0;
    ++made_[mapping->second.handle].handles;
    return mapping->second.handle;
  }

  bool Map(void* address, size_t size, size_t offset, uint64_t handle) {
    std::lock_guard guard(lock_);
    const auto made = made_.find(handle);
    if (made == made_.end() || offset + size > made->second.size || mappings_.count(address) != 0)
      return false;
    // Accessible from the beginning: runtimes fill the memory of the host's view before they say who may.
    if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, made->second.file,
             static_cast<off_t>(offset)) == MAP_FAILED)
      return false;
    mappings_[address] = {size, handle};
    ++made->second.mappings;
    return true;
  }
  bool Unmap(void* address) {
    std::lock_guard guard(lock_);
    const auto mapping = mappings_.find(address);
    if (mapping == mappings_.end()) return false;
    mmap(address, mapping->second.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
         -1, 0);
    const auto made = made_.find(mapping->second.handle);
    mappings_.erase(mapping);
    --made->second.mappings;
    EndIfUnused(made);
    return true;
  }

 private:
  using ByHandle = std::map<uint64_t, Made>;

  void EndIfUnused(ByHandle::iterator made) {
    if (made->second.handles != 0 || made->second.mappings != 0) return;
    close(made->second.file);
    GiveMemoryBack(made->second.owner, made->second.size);
    made_.erase(made);
  }

  std::mutex lock_;
  ByHandle made_;
  std::map<void*, Mapping> mappings_;
  uint64_t newest_ = 0;
};

VirtualMemory& TheVirtualMemory() {
  static auto* const memory = new VirtualMemory;
  return *memory;
}

hsa_status_t Check(bool valid) { return valid ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT; }

}  // namespace
}  // namespace standin_hsa

using namespace standin_hsa;

extern "C" {
struct hsa_amd_vmem_alloc_handle_t {
  uint64_t handle;
};
struct hsa_amd_memory_access_desc_t {
  int permissions;
  hsa_agent_t agent;
};
hsa_status_t hsa_amd_vmem_address_reserve(void** address, size_t size, uint64_t wanted, uint64_t flags);
hsa_status_t hsa_amd_vmem_address_reserve_align(void** address, size_t size, uint64_t wanted,
                                                uint64_t alignment, uint64_t flags);
hsa_status_t hsa_amd_vmem_address_free(void* address, size_t size);
hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, size_t size, int type, uint64_t flags,
                                        hsa_amd_vmem_alloc_handle_t* handle);
hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t handle);
hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_amd_vmem_alloc_handle_t* handle, void* address);
hsa_status_t hsa_amd_vmem_map(void* address, size_t size, size_t offset, hsa_amd_vmem_alloc_handle_t handle,
                              uint64_t flags);
hsa_status_t hsa_amd_vmem_unmap(void* address, size_t size);
hsa_status_t hsa_amd_vmem_set_access(void* address, size_t size, const hsa_amd_memory_access_desc_t* access,
                                     size_t count);
hsa_status_t hsa_amd_vmem_get_access(void* address, int* permissions, hsa_agent_t agent);
}

hsa_status_t hsa_amd_vmem_address_reserve(void** address, size_t size, uint64_t, uint64_t) {
  HSA_ENTRY();
  *address = VirtualMemory::Reserve(size);
  return *address == nullptr ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}
// Alignments of more than a page: so much more is reserved, and the rest of it is given back.
hsa_status_t hsa_amd_vmem_address_reserve_align(void** address, size_t size, uint64_t, uint64_t alignment,
                                                uint64_t) {
  HSA_ENTRY();
  const size_t more = alignment > 4096 ? alignment : 0;
  auto* reserved = static_cast<char*>(VirtualMemory::Reserve(size + more));
  if (reserved == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const auto start = reinterpret_cast<uintptr_t>(reserved);
  const size_t before = more == 0 ? 0 : (alignment - start % alignment) % alignment;
  if (before != 0) munmap(reserved, before);
  if (more != before) munmap(reserved + before + size, more - before);
  *address = reserved + before;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_vmem_address_free(void* address, size_t size) {
  HSA_ENTRY();
  return Check(munmap(address, size) == 0);
}
hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, size_t size, int, uint64_t,
                                        hsa_amd_vmem_alloc_handle_t* handle) {
  HSA_ENTRY();
  handle->handle = TheVirtualMemory().Make(OwnerOf(pool), size);
  return handle->handle == 0 ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t handle) {
  HSA_ENTRY();
  return Check(TheVirtualMemory().Release(handle.handle));
}
hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_amd_vmem_alloc_handle_t* handle, void* address) {
  HSA_ENTRY();
  handle->handle = TheVirtualMemory().Retain(address);
  return Check(handle->handle != 0);
}
hsa_status_t hsa_amd_vmem_map(void* address, size_t size, size_t offset, hsa_amd_vmem_alloc_handle_t handle,
                              uint64_t) {
  HSA_ENTRY();
  return Check(TheVirtualMemory().Map(address, size, offset, handle.handle));
}
hsa_status_t hsa_amd_vmem_unmap(void* address, size_t) {
  HSA_ENTRY();
  return Check(TheVirtualMemory().Unmap(address));
}
// This agent works in the program's own address space, so everybody who may at all has access.
hsa_status_t hsa_amd_vmem_set_access(void*, size_t, const hsa_amd_memory_access_desc_t*, size_t) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_vmem_get_access(void*, int* permissions, hsa_agent_t) {
  HSA_ENTRY();
  constexpr int kReadAndWrite = 3;
  *permissions = kReadAndWrite;
  return HSA_STATUS_SUCCESS;
}
