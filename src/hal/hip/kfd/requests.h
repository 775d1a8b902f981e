// Requests about hardware queues to AMD's kernel driver for compute (KFD, /dev/kfd), made by a runtime or by
// us. Numbers and layouts are those of linux/kfd_ioctl.h, which is not needed; a test compares them.
//
// It has no state, and reads a request only within its declared size.
#pragma once

#include <cstdint>

namespace xsched::hip::kfd {

// ioctl(2): passes on a request of the program.
using IoctlCall = int (*)(int fd, unsigned long request, void* argument);

using GpuId = uint32_t;    // KFD's own number of a GPU, or of a part of one
using QueueId = uint32_t;  // unique within the process

// The settings of a queue that can be changed. Each request sets all of them.
struct QueueConfig {
  uint64_t ring = 0;
  uint32_t ring_size = 0;
  uint32_t percentage = 0;  // the low byte: 0 to 100; above it, which part of the GPU reads some packets
  uint32_t priority = 0;

  bool operator==(const QueueConfig&) const = default;

  // With percentage 0, KFD takes the queue off the hardware. Running work is saved (CWSR). It continues where
  // it was when the percentage is not 0 any more.
  QueueConfig Inactive() const {
    QueueConfig config = *this;
    config.percentage &= ~0xffu;
    return config;
  }
};

// A runtime's request to KFD. KFD's answers in it are valid after the request has succeeded.
struct Request {
  enum class Kind { kOther, kCreate, kDestroy, kUpdate };
  Kind kind = Kind::kOther;
  QueueId queue = 0;   // kCreate: KFD's answer
  QueueConfig config;  // kCreate, kUpdate
  // kCreate:
  GpuId gpu = 0;
  bool compute = false;      // false: it only copies
  bool saves_waves = false;  // there is memory to save running work when the queue is taken off
};

// True if `request` may be for KFD. Cheap, because it checks every ioctl of the process.
constexpr bool MayConcern(unsigned long request) {
  // Requests of consoles have the same letter, and no size.
  return (request >> 8 & 0xff) == 'K' && (request >> 16 & 0x3fff) != 0;
}

Request ReadRequest(unsigned long request, const void* argument);

// Performs a kUpdate request for `queue` with `config`. Used for our own requests, and in place of a
// program's, whose argument is not changed. Returns like ioctl(2).
int Update(IoctlCall call, int fd, QueueId queue, const QueueConfig& config);

}  // namespace xsched::hip::kfd
