// What was found out about a caller, remembered by the address that its call returns to: finding a library by
// an address costs microseconds, reading it here one load.
//
// One word per call site, so that it is read and written whole; two call sites may share a word, and then
// take turns in it. An address is one of user space, below bit 48; what is known of it is above.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xsched::shim {

class CallSites {
 public:
  static constexpr int kUnknown = -1;

  // What Remember was told last; kUnknown: nothing.
  int Find(const void* site) const {
    // acquire: what the number stands for was made before it got here.
    const uint64_t known = SlotOf(site).load(std::memory_order_acquire);
    return (known & kAddress) == Number(site) ? static_cast<int>(known >> kAddressBits) : kUnknown;
  }

  void Remember(const void* site, uint16_t what) {
    SlotOf(site).store(uint64_t{what} << kAddressBits | Number(site), std::memory_order_release);
  }

  // Libraries have gone: others may come where they were.
  void Forget() {
    for (std::atomic<uint64_t>& slot : slots_) slot.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr int kAddressBits = 48;
  static constexpr uint64_t kAddress = (uint64_t{1} << kAddressBits) - 1;
  static constexpr int kSlotBits = 11;

  static uint64_t Number(const void* site) { return reinterpret_cast<uint64_t>(site) & kAddress; }
  static size_t Index(const void* site) { return Number(site) * 0x9e3779b97f4a7c15u >> (64 - kSlotBits); }
  std::atomic<uint64_t>& SlotOf(const void* site) { return slots_[Index(site)]; }
  const std::atomic<uint64_t>& SlotOf(const void* site) const { return slots_[Index(site)]; }

  std::atomic<uint64_t> slots_[size_t{1} << kSlotBits] = {};
};

}  // namespace xsched::shim
