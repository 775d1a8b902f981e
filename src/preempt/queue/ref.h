// Intrusive reference counts and checked handles.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/array.h"
#include "base/handle.h"
#include "base/mutex.h"

namespace xsched::preempt {

// T has `std::atomic<uint32_t> references` and `void Dispose()`, which is called when the last reference is
// released.
template <typename T>
class Ref {
 public:
  Ref() = default;
  // Takes over a reference that the caller owns.
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref Share(T* object) {
    if (object != nullptr) object->references.fetch_add(1, std::memory_order_relaxed);
    return Adopt(object);
  }
  Ref(const Ref& other) : Ref(Share(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    // acq_rel: the thread that disposes of the object must see all changes that other threads made to it.
    if (object_ != nullptr && object_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      object_->Dispose();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// Maps handles to objects. A stale handle, one of another table, or an invented one finds nothing.
template <typename T, uint8_t kKind>
class HandleTable {
 public:
  // Shares `object`; 0: out of memory.
  uint64_t Add(const Ref<T>& object) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    size_t index = free_head_;
    if (index == kNone) {
      if (slots_.size() > kMaxHandleIndex || !slots_.Push(Slot{nullptr, 1, 0, kNone})) return 0;
      index = slots_.size() - 1;
    } else {
      free_head_ = slots_[index].next_free;
    }
    object->references.fetch_add(1, std::memory_order_relaxed);
    slots_[index].object = object.get();
    return Handle(index);
  }

  Ref<T> Get(uint64_t handle) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Slot* slot = Find(handle);
    return slot == nullptr ? Ref<T>() : Ref<T>::Share(slot->object);
  }

  // Removes the handle; null: there was none.
  Ref<T> Remove(uint64_t handle) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Slot* slot = Find(handle);
    return slot == nullptr ? Ref<T>() : Free(slot);
  }

  // Removes a handle that its owner may still use: for this one, WasConsumed returns true.
  Ref<T> Consume(uint64_t handle) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Slot* slot = Find(handle);
    if (slot == nullptr) return Ref<T>();
    slot->consumed = slot->generation;
    return Free(slot);
  }

  // True if the handle was consumed. May also be true for an older handle that was removed.
  bool WasConsumed(uint64_t handle) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const size_t index = HandleIndex(handle);
    return HandleKind(handle) == kKind && index < slots_.size() && HandleGeneration(handle) != 0 &&
           HandleGeneration(handle) <= slots_[index].consumed;
  }

  void ResetAfterFork() { mutex_.ResetAfterFork(); }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  struct Slot {
    T* object;
    uint32_t generation;
    uint32_t consumed;  // the newest such generation; 0: none
    size_t next_free;
  };

  uint64_t Handle(size_t index) const REQUIRES(mutex_) {
    return PackHandle(kKind, slots_[index].generation, static_cast<uint32_t>(index));
  }

  Ref<T> Free(Slot* slot) REQUIRES(mutex_) {
    Ref<T> object = Ref<T>::Adopt(std::exchange(slot->object, nullptr));
    ++slot->generation;
    slot->next_free = free_head_;
    free_head_ = static_cast<size_t>(slot - slots_.begin());
    return object;
  }

  Slot* Find(uint64_t handle) REQUIRES(mutex_) {
    const size_t index = HandleIndex(handle);
    if (index >= slots_.size() || slots_[index].object == nullptr || Handle(index) != handle) return nullptr;
    return &slots_[index];
  }

  Mutex<LockRank::kHandles> mutex_;
  Array<Slot> slots_ GUARDED_BY(mutex_);
  size_t free_head_ GUARDED_BY(mutex_) = kNone;
};

}  // namespace xsched::preempt
