// The memory that a client, its device and the scheduler share: one segment per client process, one control
// block per queue in it. This file is the binary contract between processes; change it only by the rules
// below. Who writes and reads it, and in which order, is in control_access.h.
//
// The client makes the segment as a memfd, seals it against shrinking and growing, and hands it to the server
// with its hello (messages.h). The server trusts nothing in it: it reads each word once, keeps copies of all
// that matters, and writes only the words marked [scheduler]. A client can spoil its own queues, no others.
//
//   offset 0       SegmentHeader                       4096 bytes
//   offset 4096    ControlBlock[kMaxQueues]            128 bytes each
//   then           DependencySlot[kMaxQueues][4]       16 bytes each, all [client]
//
//   ControlBlock:
//     line 0   [scheduler]  gate     flags  query
//              [client]        open
//     line 1   [client]     submitted  retired  passed  pause  moved
//
// Devices that read host memory wait at a gate by themselves: gate and open are the halves of one word, and
// the device goes on while either is set (kDeviceGateMask); then, where the program suspends the queue by
// itself, until pause is 0. They report what they have done in retired and passed.
//
// Ordering. Counters are published with release and read with acquire. Who moves a queue between idle and
// ready does: store the counter, then fence(seq_cst), then set the queue's bit in `dirty`, then ring. The
// scheduler does: clear `dirty` with acq_rel, then read the counters. So no change is lost; one may be seen
// twice. A gate word closed and reopened faster than a device polls it may not be seen as open: never pulse
// it.
//
// Compatibility. kSegmentVersion changes when a word changes its meaning; a server maps what it knows only. A
// word that is new is 0 in segments of older clients, and means nothing new then: so it is with `moved`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xsched::ipc {

inline constexpr uint32_t kSegmentMagic = 0x4d475358;  // "XSGM"
inline constexpr uint32_t kSegmentVersion = 1;
inline constexpr uint32_t kMaxQueues = 1024;  // per process; further queues run unscheduled

// ControlBlock::gate
inline constexpr uint16_t kGateHold = 0;
inline constexpr uint16_t kGateRun = 1;
// What a device looks at in the word that holds gate and open.
inline constexpr uint32_t kDeviceGateMask = 0x00010001;

// ControlBlock::flags
inline constexpr uint32_t kFlagTracked = 1u << 0;  // report ready <-> idle and dependencies at once
inline constexpr uint32_t kFlagGated = 1u << 1;    // keep what is in flight bounded; it may be held
inline constexpr uint32_t kFlagSliced = 1u << 2;  // … by other processes only, which time slices serve first

inline constexpr int kMaxDependencies = 4;

// A wait for another queue of the same process: until it has retired its command number `until`.
//
// A slot stays as it is when the wait is over, and the other queue's block may have another queue by then:
// `generation` says which one is meant. 0 (clients that do not say it): whichever has the block.
struct DependencySlot {
  std::atomic<uint64_t> until;       // 0: empty
  std::atomic<uint32_t> queue;       // index of the other queue's control block
  std::atomic<uint32_t> generation;  // of the other queue's handle
};

struct alignas(128) ControlBlock {
  // Written by the scheduler, but for `open`.
  alignas(64) std::atomic<uint16_t> gate;
  std::atomic<uint16_t> open;  // [client] 1: gates are open whatever the scheduler says
  std::atomic<uint32_t> flags;
  std::atomic<uint32_t> query;  // counts up: the scheduler wants `retired` to be brought up to date

  // Written by the client, the HAL or the device.
  alignas(64) std::atomic<uint64_t> submitted;  // commands handed to the driver
  std::atomic<uint64_t> retired;                // of these, known to have finished, in order
  std::atomic<uint64_t> passed;  // the last gate that the device went through stood behind these
  std::atomic<uint32_t> pause;   // 1: the program suspended the queue
  std::atomic<uint32_t> moved;   // counts up: commands have retired that report nothing
};

// Dependencies are rare: they live beside the blocks, so that a block stays two lines.
struct SegmentHeader {
  uint32_t magic;
  uint32_t version;
  uint32_t max_queues;
  uint32_t reserved;
  alignas(64) std::atomic<uint64_t> dirty[kMaxQueues / 64];  // set by the client, cleared by the scheduler
};

struct Segment {
  SegmentHeader header;
  alignas(4096) ControlBlock blocks[kMaxQueues];
  DependencySlot depends[kMaxQueues][kMaxDependencies];
};

inline constexpr size_t kSegmentSize = (sizeof(Segment) + 4095) / 4096 * 4096;

static_assert(sizeof(ControlBlock) == 128);
static_assert(offsetof(ControlBlock, submitted) == 64);
static_assert(offsetof(ControlBlock, moved) == 92);
static_assert(offsetof(ControlBlock, open) == offsetof(ControlBlock, gate) + 2);
static_assert(offsetof(Segment, blocks) == 4096);
static_assert(sizeof(DependencySlot) == 16);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace xsched::ipc
