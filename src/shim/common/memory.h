// The memory that the program has allocated under a limit (preempt/api/memory.h): how large each allocation
// is, where it is, and what pools hold.
//
//   allocation --> TakeMemory --> the driver's call --> a book: address -> size and home
//   free       --> out of the book --> the driver's call --> GiveMemoryBack
//
// An address leaves the book before the driver frees it, because another thread may get it right after that.
//
// A pool keeps memory that is freed into it. So what counts of a pool is what it has reserved, by the
// driver's word. The driver is asked after every kPoolTrust bytes that were allocated from it, and before an
// allocation is refused. In between, each allocation counts as if the pool had grown by it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "base/pointer_map.h"
#include "xsched/types.h"

namespace xsched::shim {

// What memory belongs to, and ends with: a context, or a device of a runtime instance.
struct MemoryHome {
  std::atomic<uint64_t> key{0};   // 0: free
  std::atomic<int> device{-1};    // its number in the account; -1: not limited
  std::atomic<int> ordinal{-1};   // its number in the program
  std::atomic<uint64_t> pool{0};  // the current pool of its device; 0: the driver must be asked
};
inline constexpr int kMaxMemoryHomes = 255;

// Null: it is not known.
MemoryHome* FindMemoryHome(uint64_t key);
// Null: there is no room. Then its memory is not counted.
MemoryHome* AddMemoryHome(uint64_t key, int ordinal, XDevice device);
// The home has ended, and all of its memory with it.
void ForgetMemoryOf(uint64_t key);
// The program has chosen other pools.
void ForgetCurrentPools();

// As preempt::TakeMemory, GiveMemoryBack.
bool TakeMemoryOf(const MemoryHome& home, uint64_t bytes);
void GiveMemoryBackOf(const MemoryHome& home, uint64_t bytes);

// Sizes of allocations by their addresses or handles.
class MemoryBook {
 public:
  struct Entry {
    MemoryHome* home = nullptr;  // null: it was not counted
    uint64_t size = 0;
  };

  // False: there is no memory for it.
  bool Enter(uint64_t key, Entry entry);
  Entry Remove(uint64_t key);
  bool Has(uint64_t key) const;
  // Removes the entries of a home, and gives back what they had.
  void RemoveAllOf(const MemoryHome& home);
  void ResetAfterFork() { entries_.ResetAfterFork(); }

 private:
  PointerMap<const void> entries_;  // size, and above it the home's number, from 1 on
};

extern MemoryBook& linear_memory;
extern MemoryBook& array_memory;

// ---- memory without an address, and where it is mapped ----

struct Physical;
// False: there is no memory for it.
bool EnterPhysical(uint64_t handle, MemoryBook::Entry entry);
// Before a handle is released, and after that has succeeded or not.
class ReleasedPhysical {
 public:
  void Begin(uint64_t handle);
  void Finish(bool released);

 private:
  Physical* physical_ = nullptr;  // null: it is not counted
};
void RetainedPhysical(uint64_t handle);
void Mapped(uint64_t address, uint64_t size, uint64_t handle);
void Unmapped(uint64_t address, uint64_t size);

// ---- pools ----

// What a thread may read of a pool without a lock. What the driver is asked about it, and its end, take
// memory_pools_lock: a driver must not be asked about a pool that is gone.
struct MemoryPool {
  std::atomic<uint64_t> key{0};  // its handle, or a number of ours; 0: free
  std::atomic<int> runtime{0};   // the instance of the platform's runtime that knows the handle
  std::atomic<int> device{-1};   // its number in the account
  std::atomic<int> ordinal{-1};  // its number in the program
  std::atomic<bool> of_graphs{false};
  std::atomic<uint64_t> counted{0};  // what it had reserved when the driver was asked
  std::atomic<uint64_t> since{0};    // what was allocated from it since then, and counts as well
};
inline constexpr int kMaxMemoryPools = 64;
inline constexpr uint64_t kPoolTrust = uint64_t{32} << 20;

extern Mutex<LockRank::kMemoryPools>& memory_pools_lock;
// Null: not known, and so not counted.
MemoryPool* FindMemoryPool(int runtime, uint64_t key);
struct NewMemoryPool {
  int runtime;
  uint64_t key;
  int ordinal;
  int device;
  bool of_graphs = false;
};
// Null: there is no room.
MemoryPool* AddMemoryPool(const NewMemoryPool& made);
MemoryPool* MemoryPoolAt(int i);  // null: there is none
// The driver's word: it has reserved so much. `since`: what of pool.since is in it.
void PoolHas(MemoryPool& pool, uint64_t reserved, uint64_t since);
void ForgetMemoryPool(MemoryPool& pool) REQUIRES(memory_pools_lock);

}  // namespace xsched::shim
