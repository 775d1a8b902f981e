// A cache of answers about callers, by the return address of their calls. Finding a library by an address
// costs microseconds. Reading the answer here costs one or two loads.
//
// One word per call site, so that it is read and written atomically:
//
//    63     58 57        48 47                              0
//   | answer  | question   | address, which is user space's  |
//
// The question, for example which function was called, is part of the key. Words with the same hash share a
// bucket of one cache line. In a full bucket, a new word replaces another one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xsched::shim {

class CallSites {
 public:
  static constexpr int kAnswers = 1 << 6;
  static constexpr int kQuestions = 1 << 10;
  static constexpr int kUnknown = -1;

  // The last answer given to Remember; kUnknown: none.
  int Find(const void* site, int question = 0) const {
    const uint64_t key = KeyOf(site, question);
    for (const std::atomic<uint64_t>& word : buckets_[IndexOf(key)].words) {
      // acquire: what the answer refers to was made before the answer was stored.
      const uint64_t known = word.load(std::memory_order_acquire);
      if ((known & kKey) == key) return static_cast<int>(known >> kKeyBits);
    }
    return kUnknown;
  }

  void Remember(const void* site, int answer, int question = 0) {
    const uint64_t key = KeyOf(site, question);
    const uint64_t whole = static_cast<uint64_t>(answer) << kKeyBits | key;
    Bucket& bucket = buckets_[IndexOf(key)];
    for (std::atomic<uint64_t>& word : bucket.words) {
      uint64_t known = word.load(std::memory_order_relaxed);
      if ((known & kKey) == key) {
        word.store(whole, std::memory_order_release);
        return;
      }
      if (known == 0 && word.compare_exchange_strong(known, whole, std::memory_order_release)) return;
    }
    const uint32_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
    bucket.words[turn % kBucketSize].store(whole, std::memory_order_release);
  }

  // Libraries were unloaded, and others may get their addresses.
  void Forget() {
    for (Bucket& bucket : buckets_) {
      for (std::atomic<uint64_t>& word : bucket.words) {
        // Does not write to pages that were never written.
        if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
      }
    }
  }

 private:
  static constexpr int kAddressBits = 48;
  static constexpr int kKeyBits = 58;
  static constexpr uint64_t kAddress = (uint64_t{1} << kAddressBits) - 1;
  static constexpr uint64_t kKey = (uint64_t{1} << kKeyBits) - 1;
  // PyTorch has a call site for each of its kernels: thousands.
  static constexpr int kBucketBits = 11;
  static constexpr size_t kBucketSize = 8;

  struct alignas(64) Bucket {
    std::atomic<uint64_t> words[kBucketSize];
  };

  static uint64_t KeyOf(const void* site, int question) {
    return (static_cast<uint64_t>(question) << kAddressBits | (reinterpret_cast<uint64_t>(site) & kAddress)) &
           kKey;
  }
  static size_t IndexOf(uint64_t key) { return key * 0x9e3779b97f4a7c15u >> (64 - kBucketBits); }

  Bucket buckets_[size_t{1} << kBucketBits] = {};
  std::atomic<uint32_t> turns_{0};
};

}  // namespace xsched::shim
