// A map from a driver's handle (a pointer's value) to a pointer, read without locks on every launch.
//
// Open addressing with linear probing. Readers only load; writers hold a lock. A removed key leaves a
// tombstone, so that chains stay connected. A later insert reuses it. When the table is full, one of twice
// the size replaces it. Old tables are kept until the map is destroyed, because readers may still use them.
// Together they are smaller than the newest one. A table is never replaced by one of the same size: otherwise
// inserting and removing would leave more and more old tables.
//
// An entry is used by one key after another. Its version shows a reader whether the loaded value belongs to
// the key that it saw before (see Publish).
//
// A found value may be removed a moment later. The caller must make sure that the object stays alive.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace xsched {

template <typename Value>
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  ~PointerMap() {
    for (Table* table = table_.load(std::memory_order_relaxed); table != nullptr;) {
      Table* older = table->older;
      free(table);
      table = older;
    }
  }

  // Null: no such key.
  Value* Find(uint64_t key) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    for (size_t i = Slot(key, table->mask), probes = 0; probes <= table->mask;) {
      const Entry& entry = table->entries[i];
      uint64_t version = entry.version.load(std::memory_order_acquire);
      uint64_t found = entry.key.load(std::memory_order_acquire);
      if (found == key) {
        Value* value = entry.value.load(std::memory_order_acquire);
        if (entry.version.load(std::memory_order_relaxed) == version) return value;
        continue;  // another key has, or had, this entry: try again
      }
      if (found == kEmpty) return nullptr;
      i = (i + 1) & table->mask;
      ++probes;
    }
    return nullptr;
  }

  // Adds or replaces. REQUIRES: key is neither 0 nor UINT64_MAX. False: out of memory.
  bool Insert(uint64_t key, Value* value) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || (used_ + 1) * 2 > table->mask + 1) {
      table = Grow(table);
      if (table == nullptr) return false;
    }
    Entry* tombstone = nullptr;
    for (size_t i = Slot(key, table->mask);; i = (i + 1) & table->mask) {
      Entry& entry = table->entries[i];
      uint64_t found = entry.key.load(std::memory_order_relaxed);
      if (found == key) {
        entry.value.store(value, std::memory_order_release);
        return true;
      }
      if (found == kTombstone && tombstone == nullptr) tombstone = &entry;
      if (found != kEmpty) continue;
      if (tombstone == nullptr) ++used_;
      Publish(tombstone != nullptr ? *tombstone : entry, key, value);
      return true;
    }
  }

  // Returns what was there; null: nothing.
  Value* Remove(uint64_t key) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr) return nullptr;
    for (size_t i = Slot(key, table->mask), probes = 0; probes <= table->mask;
         i = (i + 1) & table->mask, ++probes) {
      Entry& entry = table->entries[i];
      uint64_t found = entry.key.load(std::memory_order_relaxed);
      if (found == kEmpty) return nullptr;
      if (found != key) continue;
      Value* value = entry.value.load(std::memory_order_relaxed);
      entry.value.store(nullptr, std::memory_order_release);
      entry.key.store(kTombstone, std::memory_order_release);
      // Tombstones at the end of a chain are not needed. If they were kept, inserting and removing would fill
      // the table.
      for (; table->entries[i].key.load(std::memory_order_relaxed) == kTombstone &&
             table->entries[(i + 1) & table->mask].key.load(std::memory_order_relaxed) == kEmpty;
           i = (i - 1) & table->mask) {
        table->entries[i].key.store(kEmpty, std::memory_order_release);
        --used_;
      }
      return value;
    }
    return nullptr;
  }

  // Calls visit(key, value) for each entry, under the writers' lock: visit must not change the map.
  template <typename Visit>
  void ForEach(Visit&& visit) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr) return;
    for (size_t i = 0; i <= table->mask; ++i) {
      uint64_t key = table->entries[i].key.load(std::memory_order_relaxed);
      if (key == kEmpty || key == kTombstone) continue;
      visit(key, table->entries[i].value.load(std::memory_order_relaxed));
    }
  }

  void ResetAfterFork() { mutex_.ResetAfterFork(); }

 private:
  static constexpr uint64_t kEmpty = 0;
  static constexpr uint64_t kTombstone = UINT64_MAX;

  struct Entry {
    std::atomic<uint64_t> version;  // the number of keys that have used it
    std::atomic<uint64_t> key;
    std::atomic<Value*> value;
  };
  struct Table {
    Table* older;
    size_t mask;
    Entry entries[];
  };

  static size_t Slot(uint64_t key, size_t mask) {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
  }

  // Gives an empty or removed entry to `key`. Each store releases those before it. So a reader that sees this
  // version does not see the former key any more; one that sees this value also sees this version or a later
  // one; one that sees this key also sees this value or a later one. If the version is the same before the
  // key and after the value is read, the two belong together.
  static void Publish(Entry& entry, uint64_t key, Value* value) {
    entry.version.store(entry.version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    entry.value.store(value, std::memory_order_release);
    entry.key.store(key, std::memory_order_release);
  }

  Table* Grow(Table* old) REQUIRES(mutex_) {
    const size_t capacity = old == nullptr ? 64 : (old->mask + 1) * 2;
    auto* table = static_cast<Table*>(calloc(1, sizeof(Table) + capacity * sizeof(Entry)));
    if (table == nullptr) return nullptr;
    table->older = old;
    table->mask = capacity - 1;
    used_ = 0;
    for (size_t i = 0; old != nullptr && i <= old->mask; ++i) {
      uint64_t key = old->entries[i].key.load(std::memory_order_relaxed);
      if (key == kEmpty || key == kTombstone) continue;
      size_t j = Slot(key, table->mask);
      while (table->entries[j].key.load(std::memory_order_relaxed) != kEmpty) j = (j + 1) & table->mask;
      Publish(table->entries[j], key, old->entries[i].value.load(std::memory_order_relaxed));
      ++used_;
    }
    table_.store(table, std::memory_order_release);
    return table;
  }

  Mutex<LockRank::kPointerMap> mutex_;
  std::atomic<Table*> table_{nullptr};  // written under mutex_
  size_t used_ GUARDED_BY(mutex_) = 0;  // live keys and tombstones
};

}  // namespace xsched
