#include "memory.h"

#include <hsa/hsa_ext_amd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "agent.h"
#include "entry.h"
#include "newer.h"

namespace standin_hsa {
namespace {

constexpr size_t kPage = 4096;

enum class PoolKind : uint64_t { kFineGrained, kKernelArguments, kCoarseGrained, kOnGpu, kGroup };
constexpr uint64_t kPoolKinds = 8;

hsa_amd_memory_pool_t Pool(hsa_agent_t agent, PoolKind kind) {
  return {agent.handle * kPoolKinds + static_cast<uint64_t>(kind)};
}
PoolKind KindOf(hsa_amd_memory_pool_t pool) { return static_cast<PoolKind>(pool.handle % kPoolKinds); }

uint32_t FlagsOf(PoolKind kind) {
  switch (kind) {
    case PoolKind::kFineGrained:
      return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
    case PoolKind::kKernelArguments:
      return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT;
    default:
      return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
  }
}

// What a handle holds of memory that others may attach. Only the process that made it can: this agent's
// memory is its process's own.
struct SharedMemory {
  pid_t process;
  void* memory;
};
static_assert(sizeof(SharedMemory) <= sizeof(hsa_amd_ipc_memory_t));

struct Range {
  size_t size;
  hsa_agent_t owner;
  uint32_t flags;
  bool locked;  // the program's own memory
};

class Ranges {
 public:
  void* Allocate(hsa_amd_memory_pool_t pool, size_t size) {
    const hsa_agent_t owner = OwnerOf(pool);
    size = std::max((size + kPage - 1) / kPage * kPage, kPage);
    std::lock_guard guard(lock_);
    if (size > Available(owner)) return nullptr;
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    used_[owner.handle] += size;
    by_address_[Address(memory)] = {size, owner, FlagsOf(KindOf(pool)), false};
    return memory;
  }
  bool Free(void* memory) {
    std::lock_guard guard(lock_);
    auto it = by_address_.find(Address(memory));
    if (it == by_address_.end() || it->second.locked) return false;
    used_[it->second.owner.handle] -= it->second.size;
    munmap(memory, it->second.size);
    by_address_.erase(it);
    return true;
  }
  void Lock(void* memory, size_t size) {
    std::lock_guard guard(lock_);
    by_address_.insert({Address(memory), {size, kHost, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, true}});
  }
  void Unlock(void* memory) {
    std::lock_guard guard(lock_);
    auto it = by_address_.find(Address(memory));
    if (it != by_address_.end() && it->second.locked) by_address_.erase(it);
  }
  // False: nothing is known of this address.
  bool Find(const void* address, void** base, Range* range) {
    std::lock_guard guard(lock_);
    auto it = by_address_.upper_bound(Address(address));
    if (it == by_address_.begin()) return false;
    --it;
    if (Address(address) >= it->first + it->second.size) return false;
    *base = reinterpret_cast<void*>(it->first);
    *range = it->second;
    return true;
  }
  bool Knows(const void* address) {
    void* base = nullptr;
    Range range{};
    return Find(address, &base, &range);
  }
  bool Take(hsa_agent_t agent, size_t size) {
    std::lock_guard guard(lock_);
    if (size > Available(agent)) return false;
    used_[agent.handle] += size;
    return true;
  }
  void GiveBack(hsa_agent_t agent, size_t size) {
    std::lock_guard guard(lock_);
    used_[agent.handle] -= size;
  }
  size_t AvailableTo(hsa_agent_t agent) {
    std::lock_guard guard(lock_);
    return Available(agent);
  }

 private:
  static uintptr_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }
  size_t Available(hsa_agent_t agent) { return TheSettings().memory_per_gpu - used_[agent.handle]; }

  std::mutex lock_;
  std::map<uintptr_t, Range> by_address_;
  std::map<uint64_t, size_t> used_;
};

Ranges& AllRanges() {
  static auto* const ranges = new Ranges;
  return *ranges;
}

template <typename T>
hsa_status_t Answer(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return HSA_STATUS_SUCCESS;
}

}  // namespace

size_t AvailableMemory(hsa_agent_t agent) { return AllRanges().AvailableTo(agent); }
void* AllocateOnGpu(hsa_agent_t gpu, size_t size) {
  return AllRanges().Allocate(Pool(gpu, PoolKind::kOnGpu), size);
}
void Free(void* memory) { AllRanges().Free(memory); }
bool TakeMemory(hsa_agent_t agent, size_t size) { return AllRanges().Take(agent, size); }
void GiveMemoryBack(hsa_agent_t agent, size_t size) { AllRanges().GiveBack(agent, size); }
hsa_agent_t OwnerOf(hsa_amd_memory_pool_t pool) { return {pool.handle / kPoolKinds}; }

}  // namespace standin_hsa

using namespace standin_hsa;

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*),
                                                void* data) {
  HSA_ENTRY();
  static constexpr PoolKind kHosts[] = {PoolKind::kFineGrained, PoolKind::kKernelArguments,
                                        PoolKind::kCoarseGrained};
  static constexpr PoolKind kGpus[] = {PoolKind::kOnGpu, PoolKind::kGroup};
  auto each = [&](const auto& kinds) {
    for (PoolKind kind : kinds) {
      if (hsa_status_t status = callback(Pool(agent, kind), data); status != HSA_STATUS_SUCCESS)
        return status;
    }
    return HSA_STATUS_SUCCESS;
  };
  return IsGpu(agent) ? each(kGpus) : each(kHosts);
}
hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute,
                                          void* value) {
  HSA_ENTRY();
  const bool group = KindOf(pool) == PoolKind::kGroup;
  switch (static_cast<int>(attribute)) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      return Answer(value, group ? HSA_AMD_SEGMENT_GROUP : HSA_AMD_SEGMENT_GLOBAL);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
      return Answer<uint32_t>(value, group ? 0 : FlagsOf(KindOf(pool)));
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
      return Answer<size_t>(value, group ? 64 << 10 : TheSettings().memory_per_gpu);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      return Answer(value, !group);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
    case kPoolRecommendedGranule:
      return Answer<size_t>(value, kPage);
    case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
      return Answer(value, true);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t, hsa_amd_memory_pool_t,
                                                hsa_amd_agent_memory_pool_info_t attribute, void* value) {
  HSA_ENTRY();
  switch (attribute) {
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
      return Answer(value, HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
      return Answer<uint32_t>(value, 1);
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO: {
      hsa_amd_memory_pool_link_info_t link{};
      link.atomic_support_32bit = link.atomic_support_64bit = true;
      link.link_type = HSA_AMD_LINK_INFO_TYPE_PCIE;
      link.numa_distance = 20;
      return Answer(value, link);
    }
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t, void** memory) {
  HSA_ENTRY();
  *memory = AllRanges().Allocate(pool, size);
  return *memory == nullptr ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_memory_pool_free(void* memory) {
  HSA_ENTRY();
  return AllRanges().Free(memory) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}
hsa_status_t hsa_amd_agents_allow_access(uint32_t, const hsa_agent_t*, const uint32_t*, const void*) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_memory_lock_to_pool(void* memory, size_t size, hsa_agent_t*, int, hsa_amd_memory_pool_t,
                                         uint32_t, void** on_agents) {
  HSA_ENTRY();
  AllRanges().Lock(memory, size);
  *on_agents = memory;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_memory_unlock(void* memory) {
  HSA_ENTRY();
  AllRanges().Unlock(memory);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_pointer_info(const void* address, hsa_amd_pointer_info_t* info, void* (*)(size_t),
                                  uint32_t* agents, hsa_agent_t**) {
  HSA_ENTRY();
  hsa_amd_pointer_info_t known{};
  // The caller's structure may be another version's: only so much of it is written.
  known.size = info->size;
  known.type = HSA_EXT_POINTER_TYPE_UNKNOWN;
  void* base = nullptr;
  Range range{};
  if (AllRanges().Find(address, &base, &range)) {
    known.type = range.locked ? HSA_EXT_POINTER_TYPE_LOCKED : HSA_EXT_POINTER_TYPE_HSA;
    known.agentBaseAddress = known.hostBaseAddress = base;
    known.sizeInBytes = range.size;
    known.agentOwner = range.owner;
    known.global_flags = range.flags;
  }
  std::memcpy(info, &known, std::min<size_t>(info->size, sizeof known));
  if (agents != nullptr) *agents = 0;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_ipc_memory_create(void* memory, size_t, hsa_amd_ipc_memory_t* handle) {
  HSA_ENTRY();
  if (!AllRanges().Knows(memory)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const SharedMemory shared{getpid(), memory};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &shared, sizeof shared);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t* handle, size_t, uint32_t,
                                       const hsa_agent_t*, void** memory) {
  HSA_ENTRY();
  SharedMemory shared;
  std::memcpy(&shared, handle, sizeof shared);
  if (shared.process != getpid()) return HSA_STATUS_ERROR;
  *memory = shared.memory;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_ipc_memory_detach(void* memory) {
  HSA_ENTRY();
  return AllRanges().Knows(memory) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t hsa_memory_register(void*, size_t) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_memory_deregister(void*, size_t) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_coherency_set_type(hsa_agent_t, hsa_amd_coherency_type_t) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
