#include "sdma_queue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clock.h"

namespace standin_amdgpu {
namespace {

// Packets of SDMA 4.4.2: sdma_registers.h of ROCr. The first word has the operation, the second byte the
// kind.
constexpr uint32_t kNothing = 0, kCopy = 1, kFence = 5, kTrap = 6, kPoll = 8, kAtomic = 10, kFill = 11,
                   kTimestamp = 13;
constexpr uint32_t kLinear = 0;
constexpr uint32_t kPollsMemory = 1u << 31;
constexpr size_t kLongest = 8;  // words

class Packet {
 public:
  explicit Packet(const uint32_t (&words)[kLongest]) : words_(words) {}

  uint32_t operation() const { return words_[0] & 0xff; }
  uint32_t kind() const { return words_[0] >> 8 & 0xff; }
  uint32_t word(size_t index) const { return words_[index]; }
  uint64_t pair(size_t index) const { return words_[index] | uint64_t{words_[index + 1]} << 32; }
  void* address(size_t index) const { return reinterpret_cast<void*>(pair(index)); }
  size_t length() const {  // in words
    switch (operation()) {
      case kNothing:
        return 1;
      case kCopy:
        return 7;
      case kFence:
        return 4;
      case kTrap:
        return 2;
      case kPoll:
        return 6;
      case kAtomic:
        return 8;
      case kFill:
        return 5;
      case kTimestamp:
        return 3;
      default:
        return 0;
    }
  }

 private:
  const uint32_t (&words_)[kLongest];
};

void Copy(const Packet& packet) {
  std::memmove(packet.address(5), packet.address(3), size_t{packet.word(1)} + 1);
}

void Fill(const Packet& packet) {
  const uint32_t words = (packet.word(4) + 1) / 4;
  std::fill_n(static_cast<uint32_t*>(packet.address(1)), words, packet.word(3));
}

// False: the value is not there yet.
bool Poll(const Packet& packet) {
  if ((packet.word(0) & kPollsMemory) == 0) return true;  // a register, or a flush
  const auto& value = *static_cast<std::atomic<uint32_t>*>(packet.address(1));
  return (value.load(std::memory_order_acquire) & packet.word(4)) == packet.word(3);
}

}  // namespace

bool SdmaQueue::Advance(std::unique_lock<std::mutex>&) {
  const uint64_t read = read_pointer().load(std::memory_order_relaxed);
  if (read == doorbell()) return false;
  const size_t size = made().ring_size / sizeof(uint32_t);
  uint32_t words[kLongest];
  for (size_t i = 0; i < kLongest; ++i) words[i] = ring<uint32_t>()[(read / sizeof(uint32_t) + i) % size];
  const Packet packet(words);
  switch (packet.operation()) {
    case kCopy:
      if (packet.kind() != kLinear) std::abort();
      Copy(packet);
      break;
    case kFill:
      Fill(packet);
      break;
    case kFence:
      static_cast<std::atomic<uint32_t>*>(packet.address(1))
          ->store(packet.word(3), std::memory_order_release);
      break;
    case kPoll:
      if (!Poll(packet)) return false;
      break;
    case kAtomic:  // ROCr only adds
      static_cast<std::atomic<uint64_t>*>(packet.address(1))
          ->fetch_add(packet.pair(3), std::memory_order_acq_rel);
      break;
    case kTimestamp:
      *static_cast<uint64_t*>(packet.address(1)) = GpuClock();
      break;
    case kTrap:
      events().Interrupt(packet.word(1));
      break;
    default:
      break;
  }
  if (packet.length() == 0) {
    std::fprintf(stderr, "stand-in for amdgpu: an SDMA packet that it does not know: %08x\n", packet.word(0));
    std::abort();
  }
  read_pointer().store(read + packet.length() * sizeof(uint32_t), std::memory_order_release);
  return true;
}

}  // namespace standin_amdgpu
