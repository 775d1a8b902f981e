// The scopes of calls that allocate and free memory of devices, and of those that say how much there is
// (memory.h). A wrapper asks such a scope whether the allocation is refused, and does not call the driver
// then. Without a limit they do nothing.
//
// `Memory`: memory.h of each shim. It describes the platform:
//
//   Call, Result, kSuccess
//   Counts(call)                    false for calls inside other calls, which count already
//   HomeOf(call)                    that of the caller's current device; null: none, or it cannot be counted
//   HomeOf(call, stream)            that of the stream's device
//   DeviceOf(call, ordinal)         its number in the account; -1: it has no limit
//   RuntimeOf(call)                 which instance of the platform's runtime was called
//   CurrentPool(call, ordinal)      of a device; 0: it has none
//   ReadPool(call, pool, &reserved, &used)
//   TrimPool(call, pool)            the pool gives back what it does not use
//   IsCapturing(call, stream)
#pragma once

#include <cstdint>
#include <type_traits>

#include "preempt/api/memory.h"
#include "shim/common/memory.h"

namespace xsched::shim {

template <typename Handle>
uint64_t KeyOfMemory(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<uint64_t>(handle);
  } else {
    return static_cast<uint64_t>(handle);
  }
}

// REQUIRES: memory is counted, and that of the call counts. Null: the call, or the stream, has no known
// device.
template <typename Memory, typename... Stream>
MemoryHome* CountedHomeOf(const typename Memory::Call& call, Stream... stream) {
  MemoryHome* home = Memory::HomeOf(call, stream...);
  return home == nullptr || home->device.load(std::memory_order_relaxed) < 0 ? nullptr : home;
}

template <typename Memory>
MemoryHome* LimitedHomeOf(const typename Memory::Call& call) {
  if (!preempt::MemoryIsCounted() || !Memory::Counts(call)) return nullptr;
  return CountedHomeOf<Memory>(call);
}

// ---- pools ----

// Asks the driver. `used`: of what the pool has reserved.
template <typename Memory>
uint64_t AskPool(const typename Memory::Call& call, MemoryPool& pool, uint64_t* used = nullptr) {
  const uint64_t since = pool.since.exchange(0, std::memory_order_acq_rel);
  uint64_t reserved = 0;
  uint64_t in_use = 0;
  // A pool that has ended has nothing.
  if (!Memory::ReadPool(call, pool, &reserved, used == nullptr ? nullptr : &in_use)) reserved = in_use = 0;
  PoolHas(pool, reserved, since);
  if (used != nullptr) *used = in_use;
  return reserved;
}

// The pools of a device that the called runtime knows, while the program cannot destroy them.
template <typename Memory, typename Do>
void ForEachPoolOf(const typename Memory::Call& call, int device, const Do& work) {
  const int runtime = Memory::RuntimeOf(call);
  for (int i = 0; i < kMaxMemoryPools; ++i) {
    MutexLock lock(memory_pools_lock);
    MemoryPool* pool = MemoryPoolAt(i);
    if (pool != nullptr && pool->device.load(std::memory_order_relaxed) == device &&
        pool->runtime.load(std::memory_order_relaxed) == runtime)
      work(*pool);
  }
}

template <typename Memory>
void AskPoolsOf(const typename Memory::Call& call, int device) {
  ForEachPoolOf<Memory>(call, device, [&](MemoryPool& pool) { AskPool<Memory>(call, pool); });
}

// The driver does the same before it refuses an allocation. Trimming opens the gates of the program, because
// it may wait for everything. So a pool that has nothing to give back is left alone.
template <typename Memory>
void TrimPoolsOf(const typename Memory::Call& call, int device) {
  ForEachPoolOf<Memory>(call, device, [&](MemoryPool& pool) {
    uint64_t used = 0;
    if (AskPool<Memory>(call, pool, &used) <= used) return;
    Memory::TrimPool(call, pool);
    AskPool<Memory>(call, pool);
  });
}

// Takes memory, if necessary by making room for it.
template <typename Memory>
bool TakeOrMakeRoom(const typename Memory::Call& call, int device, uint64_t bytes) {
  if (preempt::TakeMemory(device, bytes)) [[likely]]
    return true;
  if (bytes > preempt::MemoryOf(device).limit) return false;
  AskPoolsOf<Memory>(call, device);
  if (preempt::TakeMemory(device, bytes)) return true;
  TrimPoolsOf<Memory>(call, device);
  return preempt::TakeMemory(device, bytes);
}

// ---- allocations that have an address ----

// What all allocations do.
template <typename Memory>
class Allocation {
 public:
  Allocation(const typename Memory::Call& call, uint64_t size)
      : home_(LimitedHomeOf<Memory>(call)), size_(size) {
    if (home_ == nullptr) return;
    refused_ = !TakeOrMakeRoom<Memory>(call, home_->device.load(std::memory_order_relaxed), size);
  }
  bool refused() const { return refused_; }

  template <typename Pointer>
  void Finish(typename Memory::Result result, const Pointer* made) const {
    FinishIn(linear_memory, result, made, size_);
  }

 protected:
  // `size`: what it really has, which may differ a little from what was asked for.
  template <typename Pointer>
  void FinishIn(MemoryBook& book, typename Memory::Result result, const Pointer* made, uint64_t size) const {
    if (home_ == nullptr) return;
    const int device = home_->device.load(std::memory_order_relaxed);
    const bool kept = result == Memory::kSuccess && made != nullptr && KeyOfMemory(*made) != 0 &&
                      book.Enter(KeyOfMemory(*made), {home_, size});
    if (!kept) return preempt::GiveMemoryBack(device, size_);
    if (size > size_) preempt::CountMemory(device, size - size_);
    if (size < size_) preempt::GiveMemoryBack(device, size_ - size);
  }
  uint64_t size() const { return size_; }

 private:
  MemoryHome* home_;
  uint64_t size_;
  bool refused_ = false;
};

// Rows are made longer. By how much is known afterwards.
template <typename Memory>
class PitchedAllocation : public Allocation<Memory> {
 public:
  PitchedAllocation(const typename Memory::Call& call, uint64_t width, uint64_t height)
      : Allocation<Memory>(call, width * height), height_(height) {}

  template <typename Pointer, typename Pitch>
  void Finish(typename Memory::Result result, const Pointer* made, const Pitch* pitch) const {
    const bool known = result == Memory::kSuccess && pitch != nullptr;
    this->FinishIn(linear_memory, result, made, known ? *pitch * height_ : this->size());
  }

 private:
  uint64_t height_;
};

template <typename Memory>
class ArrayAllocation : public Allocation<Memory> {
 public:
  template <typename... Description>
  explicit ArrayAllocation(const typename Memory::Call& call, Description... description)
      : Allocation<Memory>(call, Memory::SizeOfArray(description...)) {}

  template <typename Handle>
  void Finish(typename Memory::Result result, const Handle* made) const {
    this->FinishIn(array_memory, result, made, this->size());
  }
};

template <typename Memory>
class FreeingFrom {
 public:
  template <typename Handle>
  FreeingFrom(const typename Memory::Call& call, MemoryBook& book, Handle handle)
      : book_(book), key_(KeyOfMemory(handle)) {
    if (preempt::MemoryIsCounted() && Memory::Counts(call)) entry_ = book_.Remove(key_);
  }
  void Finish(typename Memory::Result result) const {
    if (entry_.home == nullptr) return;
    if (result != Memory::kSuccess && book_.Enter(key_, entry_)) return;
    GiveMemoryBackOf(*entry_.home, entry_.size);
  }

 private:
  MemoryBook& book_;
  uint64_t key_;
  MemoryBook::Entry entry_;
};

template <typename Memory>
class Freeing : public FreeingFrom<Memory> {
 public:
  template <typename Pointer>
  Freeing(const typename Memory::Call& call, Pointer memory)
      : FreeingFrom<Memory>(call, linear_memory, memory) {}
};

template <typename Memory>
class ArrayFreeing : public FreeingFrom<Memory> {
 public:
  template <typename Handle>
  ArrayFreeing(const typename Memory::Call& call, Handle array)
      : FreeingFrom<Memory>(call, array_memory, array) {}
};

// ---- memory without an address ----

// Memory of the host has no device.
template <typename Memory>
class PhysicalAllocation {
 public:
  template <typename Properties>
  PhysicalAllocation(const typename Memory::Call& call, uint64_t size, const Properties* properties)
      : size_(size) {
    if (!preempt::MemoryIsCounted() || !Memory::Counts(call)) return;
    home_ = Memory::HomeOfPhysical(call, properties);
    if (home_ == nullptr || home_->device.load(std::memory_order_relaxed) < 0) {
      home_ = nullptr;
      return;
    }
    refused_ = !TakeOrMakeRoom<Memory>(call, home_->device.load(std::memory_order_relaxed), size);
  }
  bool refused() const { return refused_; }

  template <typename Handle>
  void Finish(typename Memory::Result result, const Handle* made) const {
    if (home_ == nullptr) return;
    if (result == Memory::kSuccess && made != nullptr && EnterPhysical(KeyOfMemory(*made), {home_, size_}))
      return;
    GiveMemoryBackOf(*home_, size_);
  }

 private:
  MemoryHome* home_ = nullptr;
  uint64_t size_;
  bool refused_ = false;
};

template <typename Memory>
class PhysicalRelease {
 public:
  template <typename Handle>
  PhysicalRelease(const typename Memory::Call& call, Handle handle) {
    if (preempt::MemoryIsCounted() && Memory::Counts(call)) released_.Begin(KeyOfMemory(handle));
  }
  void Finish(typename Memory::Result result) { released_.Finish(result == Memory::kSuccess); }

 private:
  ReleasedPhysical released_;
};

template <typename Memory>
class PhysicalRetention {
 public:
  explicit PhysicalRetention(const typename Memory::Call&) {}
  template <typename Handle>
  void Finish(typename Memory::Result result, const Handle* handle) const {
    if (preempt::MemoryIsCounted() && result == Memory::kSuccess && handle != nullptr)
      RetainedPhysical(KeyOfMemory(*handle));
  }
};

template <typename Memory>
class Mapping {
 public:
  template <typename Pointer, typename Handle>
  Mapping(const typename Memory::Call&, Pointer address, uint64_t size, Handle handle)
      : address_(KeyOfMemory(address)), size_(size), handle_(KeyOfMemory(handle)) {}
  void Finish(typename Memory::Result result) const {
    if (preempt::MemoryIsCounted() && result == Memory::kSuccess) Mapped(address_, size_, handle_);
  }

 private:
  uint64_t address_;
  uint64_t size_;
  uint64_t handle_;
};

// Before the call, because another thread may map other memory there right after it. An unmapping that fails
// is a mistake of the program.
template <typename Memory>
class Unmapping {
 public:
  template <typename Pointer>
  Unmapping(const typename Memory::Call&, Pointer address, uint64_t size) {
    if (preempt::MemoryIsCounted()) Unmapped(KeyOfMemory(address), size);
  }
  void Finish(typename Memory::Result) const {}
};

// ---- allocations from pools ----

// What is freed in stream order gives back only what is of no pool: a pool keeps its memory.
template <typename Memory>
class PoolAllocation {
 public:
  // `pool` is null: the current one of the stream's device.
  template <typename Pool, typename Stream>
  PoolAllocation(const typename Memory::Call& call, uint64_t size, Pool pool, Stream stream)
      : call_(call), size_(size) {
    if (!preempt::MemoryIsCounted() || !Memory::Counts(call)) return;
    if (Memory::IsCapturing(call, stream)) {
      const MemoryHome* home = CountedHomeOf<Memory>(call, stream);
      refused_ = home != nullptr && !HasRoomForGraph(call, *home, size);
      return;
    }
    if (pool != nullptr) {
      pool_ = FindMemoryPool(Memory::RuntimeOf(call), KeyOfMemory(pool));
    } else if (MemoryHome* home = CountedHomeOf<Memory>(call, stream)) {
      pool_ = CurrentPoolOf(call, *home);
    }
    if (pool_ == nullptr) return;
    const int device = pool_->device.load(std::memory_order_relaxed);
    if (preempt::TakeMemory(device, size)) [[likely]] {
      taken_ = size;
      return;
    }
    uint64_t used = 0;
    const uint64_t reserved = AskPool<Memory>(call, *pool_, &used);
    if (reserved >= used && reserved - used >= size) return;  // the pool need not grow
    if (TakeOrMakeRoom<Memory>(call, device, size)) {
      taken_ = size;
    } else {
      refused_ = true;
    }
  }
  bool refused() const { return refused_; }

  void Finish(typename Memory::Result result) const {
    if (pool_ == nullptr) return;
    if (result != Memory::kSuccess) {
      if (taken_ != 0) preempt::GiveMemoryBack(pool_->device.load(std::memory_order_relaxed), taken_);
      return;
    }
    const uint64_t since = pool_->since.fetch_add(taken_, std::memory_order_acq_rel) + taken_;
    if (since >= kPoolTrust) AskPool<Memory>(call_, *pool_);
  }

  // A graph's memory is reserved when it is launched. So a part of it that is too large is refused when it is
  // added, and what the graphs have reserved counts when the driver is asked next.
  static bool HasRoomForGraph(const typename Memory::Call& call, const MemoryHome& home, uint64_t size) {
    const int device = home.device.load(std::memory_order_relaxed);
    const int ordinal = home.ordinal.load(std::memory_order_relaxed);
    MemoryPool* graphs =
        AddMemoryPool({Memory::RuntimeOf(call), kGraphs | static_cast<uint64_t>(ordinal), ordinal, device,
                       /*of_graphs=*/true});
    if (graphs != nullptr) AskPool<Memory>(call, *graphs);
    if (!TakeOrMakeRoom<Memory>(call, device, size)) return false;
    preempt::GiveMemoryBack(device, size);
    return true;
  }

 private:
  static constexpr uint64_t kGraphs = uint64_t{1} << 63;  // no handle has this bit

  static MemoryPool* CurrentPoolOf(const typename Memory::Call& call, MemoryHome& home) {
    uint64_t key = home.pool.load(std::memory_order_acquire);
    const int ordinal = home.ordinal.load(std::memory_order_relaxed);
    if (key == 0) {
      key = Memory::CurrentPool(call, ordinal);
      home.pool.store(key, std::memory_order_release);
    }
    if (key == 0) return nullptr;
    const int runtime = Memory::RuntimeOf(call);
    if (MemoryPool* known = FindMemoryPool(runtime, key)) return known;
    return AddMemoryPool({runtime, key, ordinal, home.device.load(std::memory_order_relaxed)});
  }

  const typename Memory::Call& call_;
  uint64_t size_;
  MemoryPool* pool_ = nullptr;
  uint64_t taken_ = 0;
  bool refused_ = false;
};

template <typename Memory>
class PoolCreation {
 public:
  template <typename Properties>
  PoolCreation(const typename Memory::Call& call, const Properties* properties) {
    if (!preempt::MemoryIsCounted() || !Memory::Counts(call)) return;
    ordinal_ = Memory::OrdinalOf(properties);
    if (ordinal_ >= 0) device_ = Memory::DeviceOf(call, ordinal_);
    runtime_ = Memory::RuntimeOf(call);
  }
  template <typename Pool>
  void Finish(typename Memory::Result result, const Pool* made) const {
    if (device_ >= 0 && result == Memory::kSuccess && made != nullptr)
      AddMemoryPool({runtime_, KeyOfMemory(*made), ordinal_, device_});
  }

 private:
  int runtime_ = 0;
  int ordinal_ = -1;
  int device_ = -1;
};

// What is still allocated from an ended pool does not count any more. The driver must not be asked about it,
// so it ends here before the call, and comes back if the call fails.
template <typename Memory>
class PoolsEnd {
 public:
  explicit PoolsEnd(const typename Memory::Call& call) : call_(call) {}

  void End(MemoryPool& pool) REQUIRES(memory_pools_lock) {
    ended_[count_++] = {pool.runtime, pool.key, pool.ordinal, pool.device, pool.of_graphs};
    ForgetMemoryPool(pool);
  }
  void Finish(typename Memory::Result result) const {
    ForgetCurrentPools();
    if (result == Memory::kSuccess) return;
    for (int i = 0; i < count_; ++i) {
      if (MemoryPool* kept = AddMemoryPool(ended_[i])) AskPool<Memory>(call_, *kept);
    }
  }

 private:
  const typename Memory::Call& call_;
  NewMemoryPool ended_[kMaxMemoryPools];  // the first `count_`
  int count_ = 0;
};

template <typename Memory>
class PoolDestruction : public PoolsEnd<Memory> {
 public:
  template <typename Pool>
  PoolDestruction(const typename Memory::Call& call, Pool pool) : PoolsEnd<Memory>(call) {
    if (!preempt::MemoryIsCounted()) return;
    MutexLock lock(memory_pools_lock);
    MemoryPool* known = FindMemoryPool(Memory::RuntimeOf(call), KeyOfMemory(pool));
    if (known != nullptr) this->End(*known);
  }
};

// A device is reset, and its pools end with it.
template <typename Memory>
class DevicePoolsEnd : public PoolsEnd<Memory> {
 public:
  DevicePoolsEnd(const typename Memory::Call& call, int ordinal) : PoolsEnd<Memory>(call) {
    if (!preempt::MemoryWasCounted()) return;
    const int runtime = Memory::RuntimeOf(call);
    MutexLock lock(memory_pools_lock);
    for (int i = 0; i < kMaxMemoryPools; ++i) {
      MemoryPool* pool = MemoryPoolAt(i);
      if (pool != nullptr && pool->runtime.load(std::memory_order_relaxed) == runtime &&
          pool->ordinal.load(std::memory_order_relaxed) == ordinal)
        this->End(*pool);
    }
  }
};

template <typename Memory>
class PoolChoice {
 public:
  explicit PoolChoice(const typename Memory::Call&) {}
  void Finish(typename Memory::Result) const { ForgetCurrentPools(); }
};

template <typename Memory>
class PoolTrim {
 public:
  template <typename Pool>
  PoolTrim(const typename Memory::Call& call, Pool pool)
      : call_(call),
        pool_(preempt::MemoryIsCounted() ? FindMemoryPool(Memory::RuntimeOf(call), KeyOfMemory(pool))
                                         : nullptr) {}
  void Finish(typename Memory::Result) const {
    if (pool_ != nullptr) AskPool<Memory>(call_, *pool_);
  }

 private:
  const typename Memory::Call& call_;
  MemoryPool* pool_;
};

template <typename Memory>
class GraphMemory {
 public:
  GraphMemory(const typename Memory::Call& call, uint64_t size) {
    if (size == 0) return;
    if (MemoryHome* home = LimitedHomeOf<Memory>(call))
      refused_ = !PoolAllocation<Memory>::HasRoomForGraph(call, *home, size);
  }
  bool refused() const { return refused_; }
  void Finish(typename Memory::Result) const {}

 private:
  bool refused_ = false;
};

// ---- how much there is ----

// The lesser of the device's and the limit's.
template <typename Memory>
class MemoryInfo {
 public:
  explicit MemoryInfo(const typename Memory::Call& call) : call_(call) {}

  template <typename Size>
  void Finish(typename Memory::Result result, Size* free, Size* total) const {
    if (result != Memory::kSuccess) return;
    const MemoryHome* home = LimitedHomeOf<Memory>(call_);
    if (home == nullptr) return;
    const int device = home->device.load(std::memory_order_relaxed);
    AskPoolsOf<Memory>(call_, device);
    const preempt::MemoryState state = preempt::MemoryOf(device);
    if (total != nullptr && *total > state.limit) *total = static_cast<Size>(state.limit);
    if (free != nullptr && *free > state.left) *free = static_cast<Size>(state.left);
  }

 private:
  const typename Memory::Call& call_;
};

template <typename Memory>
class DeviceTotal {
 public:
  DeviceTotal(const typename Memory::Call& call, int ordinal) : call_(call), ordinal_(ordinal) {}

  template <typename Size>
  void Finish(typename Memory::Result result, Size* total) const {
    if (result != Memory::kSuccess || total == nullptr) return;
    if (!preempt::MemoryIsCounted() || !Memory::Counts(call_)) return;
    const int device = Memory::DeviceOf(call_, ordinal_);
    if (device < 0) return;
    const uint64_t limit = preempt::MemoryOf(device).limit;
    if (*total > limit) *total = static_cast<Size>(limit);
  }

 private:
  const typename Memory::Call& call_;
  int ordinal_;
};

}  // namespace xsched::shim
