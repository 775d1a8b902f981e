// Intrusive reference counts and checked handles.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/array.h"
#include "base/mutex.h"

namespace xsched::preempt {

// T has `std::atomic<uint32_t> references` and `void Dispose()`, called when the last reference goes.
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
    // acq_rel: who disposes of the object must see what all others did to it.
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

// Maps handles to objects. A handle is (kind << 56 | generation << 24 | index + 1): a stale one, one of
// another table, or a made-up one finds nothing.
template <typename T, uint8_t kKind>
class HandleTable {
 public:
  // Shares `object`; 0: out of memory.
  uint64_t Add(const Ref<T>& object) {
    MutexLock lock(mutex_);
    size_t index = free_head_;
    if (index == kNone) {
      if (slots_.size() >= kMaxSlots || !slots_.Push(Slot{nullptr, 1, kNone, 0})) return 0;
      index = slots_.size() - 1;
    } else {
      free_head_ = slots_[index].next_free;
    }
    object->references.fetch_add(1, std::memory_order_relaxed);
    slots_[index].object = object.get();
    return Handle(index);
  }

  Ref<T> Get(uint64_t handle) {
    MutexLock lock(mutex_);
    Slot* slot = Find(handle);
    return slot == nullptr ? Ref<T>() : Ref<T>::Share(slot->object);
  }

  // Takes the handle away; null: there was none.
  Ref<T> Remove(uint64_t handle) {
    MutexLock lock(mutex_);
    Slot* slot = Find(handle);
    return slot == nullptr ? Ref<T>() : Free(slot);
  }

  // Takes a handle away that its owner may still use: WasConsumed says so.
  Ref<T> Consume(uint64_t handle) {
    MutexLock lock(mutex_);
    Slot* slot = Find(handle);
    if (slot == nullptr) return Ref<T>();
    slot->consumed = slot->generation;
    return Free(slot);
  }

  // Has the handle been consumed? May be said of an older handle that was removed.
  bool WasConsumed(uint64_t handle) {
    MutexLock lock(mutex_);
    const size_t index = IndexOf(handle);
    return handle >> 56 == kKind && index < slots_.size() && GenerationOf(handle) != 0 &&
           GenerationOf(handle) <= slots_[index].consumed;
  }

  void ResetAfterFork() { mutex_.ResetAfterFork(); }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  static constexpr size_t kMaxSlots = (1u << 24) - 2;
  static constexpr uint64_t kGenerationMask = 0xffffffffu;

  struct Slot {
    T* object;
    uint64_t generation;
    size_t next_free;
    uint64_t consumed;  // the newest such generation; 0: none
  };

  static size_t IndexOf(uint64_t handle) {
    return (handle & 0xffffffu) - 1;
  }  // 0 wraps to what nothing reaches
  static uint64_t GenerationOf(uint64_t handle) { return handle >> 24 & kGenerationMask; }

  uint64_t Handle(size_t index) const {
    return uint64_t{kKind} << 56 | (slots_[index].generation << 24 & 0x00ffffffff000000u) | (index + 1);
  }

  Ref<T> Free(Slot* slot) {
    Ref<T> object = Ref<T>::Adopt(std::exchange(slot->object, nullptr));
    slot->generation = (slot->generation + 1) & kGenerationMask;
    slot->next_free = free_head_;
    free_head_ = static_cast<size_t>(slot - slots_.begin());
    return object;
  }

  Slot* Find(uint64_t handle) {
    const size_t index = IndexOf(handle);
    if (index >= slots_.size() || slots_[index].object == nullptr || Handle(index) != handle) return nullptr;
    return &slots_[index];
  }

  Mutex mutex_;
  Array<Slot> slots_;
  size_t free_head_ = kNone;
};

}  // namespace xsched::preempt
