#include "shim/common/memory.h"

#include <stdlib.h>

#include "base/fork_handler.h"
#include "base/no_destroy.h"
#include "preempt/api/memory.h"

namespace xsched::shim {
namespace {

constinit MemoryHome homes[kMaxMemoryHomes];
std::atomic<int> homes_in_use{0};  // those behind have never been used
constinit NoDestroy<Mutex<LockRank::kMemoryHomes>> homes_lock;

constinit MemoryPool pools[kMaxMemoryPools];
std::atomic<int> pools_in_use{0};
constinit NoDestroy<Mutex<LockRank::kMemoryPools>> pools_lock;

constinit NoDestroy<MemoryBook> linear;
constinit NoDestroy<MemoryBook> arrays;

}  // namespace

// Memory with a handle. It ends when nobody has or releases a handle, and it is mapped nowhere.
struct Physical {
  uint64_t handle;
  MemoryBook::Entry entry;
  uint32_t handles;
  uint32_t mappings;
  uint32_t releases;  // of handles, under way
};

namespace {

struct Mapping {
  Physical* physical;  // null: it is not counted
  uint64_t size;
};
constinit NoDestroy<Mutex<LockRank::kMemoryMappings>> mappings_lock;
constinit NoDestroy<PointerMap<Physical>> physicals;  // by handle
constinit NoDestroy<PointerMap<Mapping>> mappings;    // by address

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] {
    homes_lock->ResetAfterFork();
    pools_lock->ResetAfterFork();
    mappings_lock->ResetAfterFork();
    linear->ResetAfterFork();
    arrays->ResetAfterFork();
    physicals->ResetAfterFork();
    mappings->ResetAfterFork();
  }};
  handler.Install();
}

// REQUIRES: mappings_lock. What has to be given back; its home is null: nothing.
MemoryBook::Entry EndIfUnused(Physical* physical) {
  if (physical->handles != 0 || physical->mappings != 0) return {};
  // Another thread may get the same handle for something else.
  if (physicals->Find(physical->handle) == physical) physicals->Remove(physical->handle);
  if (physical->releases != 0) return {};
  const MemoryBook::Entry entry = physical->entry;
  free(physical);
  return entry;
}

void GiveBack(const MemoryBook::Entry& entry) {
  if (entry.home != nullptr) GiveMemoryBackOf(*entry.home, entry.size);
}

// The records stay until the program has released and unmapped them, but they count no more.
void EndPhysicalOf(MemoryHome& home) {
  uint64_t size = 0;
  const auto end = [&](Physical* physical) {
    if (physical == nullptr || physical->entry.home != &home) return;
    size += physical->entry.size;
    physical->entry = {};
  };
  {
    MutexLock lock(*mappings_lock);
    physicals->ForEach([&](uint64_t, Physical* physical) { end(physical); });
    // A released handle may belong to something else already, while its memory is still mapped.
    mappings->ForEach([&](uint64_t, const Mapping* mapping) { end(mapping->physical); });
  }
  GiveMemoryBackOf(home, size);
}

constexpr int kHomeShift = 48;

}  // namespace

constinit MemoryBook& linear_memory = *linear;
constinit MemoryBook& array_memory = *arrays;
constinit Mutex<LockRank::kMemoryPools>& memory_pools_lock = *pools_lock;

// ---- homes ----

MemoryHome* FindMemoryHome(uint64_t key) {
  const int in_use = homes_in_use.load(std::memory_order_acquire);
  for (int i = 0; i < in_use; ++i) {
    if (homes[i].key.load(std::memory_order_acquire) == key) return &homes[i];
  }
  return nullptr;
}

MemoryHome* AddMemoryHome(uint64_t key, int ordinal, XDevice device) {
  InstallForkHandler();
  MutexLock lock(*homes_lock);
  if (MemoryHome* known = FindMemoryHome(key)) return known;
  for (int i = 0; i < kMaxMemoryHomes; ++i) {
    MemoryHome& home = homes[i];
    if (home.key.load(std::memory_order_relaxed) != 0) continue;
    home.device.store(preempt::LimitedDevice(device), std::memory_order_relaxed);
    home.ordinal.store(ordinal, std::memory_order_relaxed);
    home.pool.store(0, std::memory_order_relaxed);
    home.key.store(key, std::memory_order_release);
    if (homes_in_use.load(std::memory_order_relaxed) <= i)
      homes_in_use.store(i + 1, std::memory_order_release);
    return &home;
  }
  return nullptr;
}

void ForgetMemoryOf(uint64_t key) {
  if (!preempt::MemoryWasCounted()) return;
  MemoryHome* home = FindMemoryHome(key);
  if (home == nullptr) return;
  linear->RemoveAllOf(*home);
  arrays->RemoveAllOf(*home);
  EndPhysicalOf(*home);
  home->key.store(0, std::memory_order_release);
}

void ForgetCurrentPools() {
  for (int i = 0; i < homes_in_use.load(std::memory_order_acquire); ++i)
    homes[i].pool.store(0, std::memory_order_release);
}

bool TakeMemoryOf(const MemoryHome& home, uint64_t bytes) {
  return preempt::TakeMemory(home.device.load(std::memory_order_relaxed), bytes);
}

void GiveMemoryBackOf(const MemoryHome& home, uint64_t bytes) {
  preempt::GiveMemoryBack(home.device.load(std::memory_order_relaxed), bytes);
}

// ---- books ----

bool MemoryBook::Enter(uint64_t key, Entry entry) {
  if (entries_.Find(key) != nullptr) [[unlikely]]
    GiveBack(Remove(key));  // its free was missed
  const uint64_t number = static_cast<uint64_t>(entry.home - homes) + 1;
  return entries_.Insert(key, reinterpret_cast<const void*>(number << kHomeShift | entry.size));
}

bool MemoryBook::Has(uint64_t key) const {
  return key != 0 && key != UINT64_MAX && entries_.Find(key) != nullptr;
}

MemoryBook::Entry MemoryBook::Remove(uint64_t key) {
  if (!Has(key)) return {};
  const auto bits = reinterpret_cast<uint64_t>(entries_.Remove(key));
  if (bits == 0) return {};
  return {&homes[(bits >> kHomeShift) - 1], bits & ((uint64_t{1} << kHomeShift) - 1)};
}

void MemoryBook::RemoveAllOf(const MemoryHome& home) {
  for (;;) {
    uint64_t found[64];
    int count = 0;
    const auto number = static_cast<uint64_t>(&home - homes) + 1;
    entries_.ForEach([&](uint64_t key, const void* value) {
      if (count < 64 && reinterpret_cast<uint64_t>(value) >> kHomeShift == number) found[count++] = key;
    });
    for (int i = 0; i < count; ++i) GiveBack(Remove(found[i]));
    if (count < 64) return;
  }
}

// ---- physical memory ----

bool EnterPhysical(uint64_t handle, MemoryBook::Entry entry) {
  auto* physical = static_cast<Physical*>(handle == 0 ? nullptr : malloc(sizeof(Physical)));
  if (physical == nullptr) return false;
  *physical = {handle, entry, 1, 0, 0};
  MutexLock lock(*mappings_lock);
  if (physicals->Insert(handle, physical)) return true;
  free(physical);
  return false;
}

void ReleasedPhysical::Begin(uint64_t handle) {
  if (handle == 0 || physicals->Find(handle) == nullptr) return;
  MutexLock lock(*mappings_lock);
  physical_ = physicals->Find(handle);
  if (physical_ == nullptr || physical_->handles == 0) {
    physical_ = nullptr;
    return;
  }
  --physical_->handles;
  ++physical_->releases;
  EndIfUnused(physical_);
}

void ReleasedPhysical::Finish(bool released) {
  if (physical_ == nullptr) return;
  MemoryBook::Entry ended;
  {
    MutexLock lock(*mappings_lock);
    --physical_->releases;
    if (released) {
      ended = EndIfUnused(physical_);
    } else if (++physical_->handles == 1) {
      physicals->Insert(physical_->handle, physical_);
    }
  }
  GiveBack(ended);
}

void RetainedPhysical(uint64_t handle) {
  MutexLock lock(*mappings_lock);
  if (Physical* physical = handle == 0 ? nullptr : physicals->Find(handle)) ++physical->handles;
}

void Mapped(uint64_t address, uint64_t size, uint64_t handle) {
  if (address == 0) return;
  MutexLock lock(*mappings_lock);
  Physical* physical = handle == 0 ? nullptr : physicals->Find(handle);
  auto* mapping = static_cast<Mapping*>(malloc(sizeof(Mapping)));
  if (mapping == nullptr) return;
  *mapping = {physical, size};
  if (!mappings->Insert(address, mapping)) return free(mapping);
  if (physical != nullptr) ++physical->mappings;
}

// One call may unmap several mappings, one behind the other. Some of them may not be counted.
void Unmapped(uint64_t address, uint64_t size) {
  for (uint64_t at = address; at - address < size;) {
    MemoryBook::Entry ended;
    {
      MutexLock lock(*mappings_lock);
      Mapping* mapping = at == 0 ? nullptr : mappings->Remove(at);
      if (mapping == nullptr) return;
      at += mapping->size;
      if (Physical* physical = mapping->physical) {
        --physical->mappings;
        ended = EndIfUnused(physical);
      }
      free(mapping);
    }
    GiveBack(ended);
  }
}

// ---- pools ----

MemoryPool* FindMemoryPool(int runtime, uint64_t key) {
  const int in_use = pools_in_use.load(std::memory_order_acquire);
  for (int i = 0; i < in_use; ++i) {
    MemoryPool& pool = pools[i];
    if (pool.key.load(std::memory_order_acquire) == key &&
        pool.runtime.load(std::memory_order_relaxed) == runtime)
      return &pool;
  }
  return nullptr;
}

MemoryPool* AddMemoryPool(const NewMemoryPool& made) {
  if (made.device < 0) return nullptr;
  InstallForkHandler();
  MutexLock lock(*homes_lock);
  if (MemoryPool* known = FindMemoryPool(made.runtime, made.key)) return known;
  for (int i = 0; i < kMaxMemoryPools; ++i) {
    MemoryPool& pool = pools[i];
    if (pool.key.load(std::memory_order_relaxed) != 0) continue;
    pool.runtime.store(made.runtime, std::memory_order_relaxed);
    pool.device.store(made.device, std::memory_order_relaxed);
    pool.ordinal.store(made.ordinal, std::memory_order_relaxed);
    pool.of_graphs.store(made.of_graphs, std::memory_order_relaxed);
    pool.counted.store(0, std::memory_order_relaxed);
    pool.since.store(0, std::memory_order_relaxed);
    pool.key.store(made.key, std::memory_order_release);
    if (pools_in_use.load(std::memory_order_relaxed) <= i)
      pools_in_use.store(i + 1, std::memory_order_release);
    return &pool;
  }
  return nullptr;
}

MemoryPool* MemoryPoolAt(int i) {
  if (i >= pools_in_use.load(std::memory_order_acquire)) return nullptr;
  return pools[i].key.load(std::memory_order_acquire) == 0 ? nullptr : &pools[i];
}

void PoolHas(MemoryPool& pool, uint64_t reserved, uint64_t since) {
  const int device = pool.device.load(std::memory_order_relaxed);
  const uint64_t before = pool.counted.exchange(reserved, std::memory_order_acq_rel) + since;
  if (reserved > before) preempt::CountMemory(device, reserved - before);
  if (reserved < before) preempt::GiveMemoryBack(device, before - reserved);
}

void ForgetMemoryPool(MemoryPool& pool) {
  PoolHas(pool, 0, pool.since.exchange(0));
  pool.key.store(0, std::memory_order_release);
}

}  // namespace xsched::shim
