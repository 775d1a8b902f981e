// What is known of the program's objects, by their handles, from their creation to the program's last
// release.
//
// Counts the program's references, and has none itself: an object lives as long as it would natively. Finding
// a record takes no lock. Records are reused and never freed, because a reader may have one a moment longer
// than the map.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "base/mutex.h"
#include "base/pointer_map.h"

namespace xsched::opencl {

// What each kind of record has.
template <typename Record>
struct CountedRecord {
  std::atomic<int64_t> references{1};  // the program's
  Record* next_free = nullptr;
};

template <typename Record>
class Records {
 public:
  // Null: we did not see its creation.
  Record* Find(uint64_t key) const { return map_.Find(key); }

  // A record for Insert, with one reference. The rest is as its last object has left it. Null: out of memory.
  Record* New() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Record* record = free_;
    if (record == nullptr) return new (std::nothrow) Record;
    free_ = record->next_free;
    record->references.store(1, std::memory_order_relaxed);
    return record;
  }
  // REQUIRES: the key has no record. False: out of memory, and the record is free again.
  bool Insert(uint64_t key, Record* record) {
    if (map_.Insert(key, record)) return true;
    Free(record);
    return false;
  }
  // Whatever references the program has.
  void Forget(uint64_t key) {
    if (Record* record = map_.Remove(key)) Free(record);
  }

  // The program has taken a reference. False: it has no record.
  bool Retain(uint64_t key) {
    Record* record = Find(key);
    if (record == nullptr) return false;
    record->references.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  // The program gives a reference back. True: that was the last one, and it has no record any more.
  bool Release(uint64_t key) {
    Record* record = Find(key);
    if (record == nullptr || record->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    Forget(key);
    return true;
  }

  void ResetAfterFork() {
    mutex_.ResetAfterFork();
    map_.ResetAfterFork();
  }

 private:
  void Free(Record* record) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    record->next_free = free_;
    free_ = record;
  }

  PointerMap<Record> map_;
  Mutex<LockRank::kOpenClRecords> mutex_;
  Record* free_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace xsched::opencl
