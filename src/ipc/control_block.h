// The memory that a client, its device and the scheduler share: one segment per client process, one control
// block per queue in it. This file is the binary contract between processes; change it only by the rules
// below. Who writes and reads it, and in which order, is in control_access.h.
//
// The client makes the segment as a memfd, seals it against shrinking and growing, and sends it to the server
// with its hello (messages.h). The server trusts nothing in it: it reads each word once, keeps its own copy
// of everything that matters, and writes only the words marked [scheduler]. A client can spoil only its own
// queues.
//
//   offset 0       SegmentHeader                       4096 bytes
//   offset 4096    ControlBlock[kMaxQueues]            128 bytes each
//   then           DependencySlot[kMaxQueues][4]       16 bytes each, all [client]
//
//   ControlBlock:
//     line 0   [scheduler]  gate     flags  query
//              [client]        open
//     line 1   [client]     submitted  retired  passed  pause  moved  drained  found_idle
//                           bursts  busy_ns  burst_at
//
// Devices that read host memory wait at a gate by themselves. gate and open are the halves of one word, and
// the device waits while both are 0 (kDeviceGateMask). In queues that the program may suspend, it then waits
// until pause is 0. Devices report their progress in retired and passed.
//
// Ordering. Counters are published with release and read with acquire. A thread that makes a queue idle or
// ready stores the counter, then executes fence(seq_cst), then sets the queue's bit in `dirty`, then rings.
// The scheduler clears `dirty` with acq_rel, and then reads the counters. So no change is lost, but one may
// be seen twice. If a gate word is opened and closed faster than a device polls it, the device may miss it:
// never pulse it.
//
// Compatibility. kSegmentVersion changes when a word changes its meaning. A server maps only versions that it
// knows. A new word is 0 in segments of older clients, and 0 must mean "as before". `moved` and those
// that stand behind it are such words, and so are those of memory in the header.
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
// The bits that a device reads in the word of gate and open.
inline constexpr uint32_t kDeviceGateMask = 0x00010001;

// ControlBlock::flags
inline constexpr uint32_t kFlagTracked = 1u << 0;  // report ready <-> idle and dependencies at once
inline constexpr uint32_t kFlagGated = 1u << 1;    // bound what is in flight: the queue may be held
inline constexpr uint32_t kFlagSliced =
    1u << 2;  // gated only for other processes, which time slices serve first
// The queue is charged for its overruns: what it still does after a hold. So its client reports their end
// (`drained`).
inline constexpr uint32_t kFlagChargesOverruns = 1u << 3;
// The queue reports, or is recorded: its client counts its bursts, and how long they were. By itself this
// flag takes nothing from the queue, and makes it report nothing.
inline constexpr uint32_t kFlagCounted = 1u << 4;
// With kFlagChargesOverruns: overruns delay others all the same, so the client stops soon. Without it, it
// keeps the device busy instead.
inline constexpr uint32_t kFlagStopsSoon = 1u << 5;

inline constexpr uint64_t kNonePassed = UINT64_MAX;  // ControlBlock::passed

inline constexpr int kMaxDependencies = 4;

// A wait for another queue of the same process: until it has retired its command number `until`.
//
// When the wait is over, the slot stays as it is, and the other queue's block may be reused. So `generation`
// identifies the queue. 0 (from older clients): any queue that has the block.
struct DependencySlot {
  std::atomic<uint64_t> until;       // 0: empty
  std::atomic<uint32_t> queue;       // index of the other queue's control block
  std::atomic<uint32_t> generation;  // of the other queue's handle
};

struct alignas(128) ControlBlock {
  // Written by the scheduler, except `open`.
  alignas(64) std::atomic<uint16_t> gate;
  std::atomic<uint16_t> open;  // [client] 1: gates are open whatever the scheduler says
  std::atomic<uint32_t> flags;
  std::atomic<uint32_t> query;  // incremented when the scheduler wants `retired` to be updated

  // Written by the client, the HAL or the device.
  alignas(64) std::atomic<uint64_t> submitted;  // number of launches that have begun
  std::atomic<uint64_t> retired;                // commands that are known to have finished, in order
  // Number of the command before the last gate that the device has passed. The first gate of a queue is
  // before its first command, so kNonePassed, and not 0, means none. Only the client reads it.
  std::atomic<uint64_t> passed;
  std::atomic<uint32_t> pause;  // 1: the program suspended the queue
  std::atomic<uint32_t> moved;  // incremented when commands have retired that report nothing
  // With kFlagChargesOverruns: incremented when the device has nothing more of the queue, which is held.
  std::atomic<uint32_t> drained;
  // Incremented when the scheduler asked, and the device had nothing to do of all that was launched. The
  // program had not noticed.
  std::atomic<uint32_t> found_idle;
  // With kFlagCounted. A burst is from ready to idle. Their number and the sum of their lengths, of those
  // that have ended; and when the last one began (CLOCK_MONOTONIC, ns). Bit 0 of that: it has ended.
  std::atomic<uint32_t> bursts;
  std::atomic<uint64_t> busy_ns;
  std::atomic<uint64_t> burst_at;
};

// The memory that the client has taken of one device.
struct MemoryUse {
  std::atomic<uint64_t> device;  // XDevice; 0: none
  std::atomic<uint64_t> used;    // bytes
};
inline constexpr int kMaxMemoryUses = 32;

// Dependencies are rare. They are separate from the blocks, so that a block has only two lines.
struct SegmentHeader {
  uint32_t magic;
  uint32_t version;
  uint32_t max_queues;
  uint32_t reserved;
  alignas(64) std::atomic<uint64_t> dirty[kMaxQueues / 64];  // set by the client, cleared by the scheduler
  // For display only. 0: the client's memory has no limit.
  alignas(64) std::atomic<uint64_t> memory_limit;  // [client] bytes that its program may take of each device
  MemoryUse memory[kMaxMemoryUses];                // [client]
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
static_assert(offsetof(ControlBlock, drained) == 96);
static_assert(offsetof(ControlBlock, found_idle) == 100);
static_assert(offsetof(ControlBlock, bursts) == 104);
static_assert(offsetof(ControlBlock, busy_ns) == 112);
static_assert(offsetof(ControlBlock, burst_at) == 120);
static_assert(offsetof(ControlBlock, open) == offsetof(ControlBlock, gate) + 2);
static_assert(offsetof(SegmentHeader, memory_limit) == 192);
static_assert(offsetof(Segment, blocks) == 4096);
static_assert(sizeof(DependencySlot) == 16);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace xsched::ipc
