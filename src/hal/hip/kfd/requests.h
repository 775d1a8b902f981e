// Requests to AMD's kernel driver for compute (KFD, /dev/kfd) about hardware queues, as a runtime makes them
// and as we do. Numbers and layouts are those of linux/kfd_ioctl.h, which need not be there; a test compares.
//
// Keeps nothing; reads a request only where its declared size allows.
#pragma once

#include <cstdint>

namespace xsched::hip::kfd {

// ioctl(2), as who was asked by the program would pass it on.
using IoctlCall = int (*)(int fd, unsigned long request, void* argument);

using GpuId = uint32_t;    // KFD's own number of a GPU, or of a part of one
using QueueId = uint32_t;  // unique within the process

// What a queue can be given anew. All of it is, with each request.
struct QueueConfig {
  uint64_t ring = 0;
  uint32_t ring_size = 0;
  uint32_t percentage = 0;  // in its low byte: 0 to 100; above it, which part of the GPU reads some packets
  uint32_t priority = 0;

  bool operator==(const QueueConfig&) const = default;

  // With percentage 0 KFD takes the queue off the hardware. What runs is saved (CWSR), and goes on where it
  // was when the percentage is another.
  QueueConfig Inactive() const {
    QueueConfig config = *this;
    config.percentage &= ~0xffu;
    return config;
  }
};

// Something that a runtime asks of KFD. What KFD answers is there when the request has succeeded.
struct Request {
  enum class Kind { kOther, kCreate, kDestroy, kUpdate };
  Kind kind = Kind::kOther;
  QueueId queue = 0;   // kCreate: KFD's answer
  QueueConfig config;  // kCreate, kUpdate
  // kCreate:
  GpuId gpu = 0;
  bool compute = false;      // or it copies only
  bool saves_waves = false;  // there is memory for what runs, when it is taken off
};

// Can `request` be to KFD? Constant and cheap: it is asked about every ioctl of the process.
constexpr bool MayConcern(unsigned long request) {
  // Requests of consoles have the same letter, and no size.
  return (request >> 8 & 0xff) == 'K' && (request >> 16 & 0x3fff) != 0;
}

Request ReadRequest(unsigned long request, const void* argument);

// Performs the kUpdate that ReadRequest has read, but with `config`; a program's own as well, whose argument
// is not touched. As ioctl(2).
int Update(IoctlCall call, int fd, QueueId queue, const QueueConfig& config);

}  // namespace xsched::hip::kfd
