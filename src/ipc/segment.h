// Makes a segment (client), and maps a client's segment (server).
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "ipc/control_block.h"

namespace xsched::ipc {

class MappedSegment {
 public:
  MappedSegment() = default;
  explicit MappedSegment(Segment* segment) : segment_(segment) {}
  MappedSegment(MappedSegment&& other) noexcept : segment_(other.segment_) { other.segment_ = nullptr; }
  MappedSegment& operator=(MappedSegment&& other) noexcept;
  ~MappedSegment();

  Segment* get() const { return segment_; }
  Segment* operator->() const { return segment_; }
  explicit operator bool() const { return segment_ != nullptr; }
  // Gives up ownership: the mapping stays.
  void Forget() { segment_ = nullptr; }

 private:
  Segment* segment_ = nullptr;
};

struct OwnedSegment {
  UniqueFd memfd;  // sealed: F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
  MappedSegment mapping;
};

// Called by the client. All blocks are zero, so their gates are closed: before a queue uses a block, its gate
// must be opened. Pages take memory only when queues use them. The server makes none: a client resets a block
// (ResetBlock) before it registers the queue, and never takes pages away.
Result<OwnedSegment> CreateSegment();

// Called by the server. Accepts only a sealed memfd of exactly kSegmentSize with this version's header, so
// that no later access is out of bounds. It makes no page of the segment: later accesses may
// (server/segment_guard.h).
Result<MappedSegment> MapSegment(int memfd);

// Marks queue `index` and rings `doorbell` (an eventfd). Called by the client. Async-signal-safe.
void RingScheduler(Segment& segment, uint32_t index, int doorbell);

// Calls visit(index) for each marked queue and clears the marks. Called by the scheduler.
template <typename Visit>
void ForEachDirty(Segment& segment, Visit&& visit) {
  for (uint32_t word = 0; word < kMaxQueues / 64; ++word) {
    // Relaxed first: an idle word costs no bus lock. The exchange acquires what the marker released.
    if (segment.header.dirty[word].load(std::memory_order_relaxed) == 0) continue;
    uint64_t marks = segment.header.dirty[word].exchange(0, std::memory_order_acq_rel);
    while (marks != 0) {
      uint32_t bit = static_cast<uint32_t>(__builtin_ctzll(marks));
      marks &= marks - 1;
      visit(word * 64 + bit);
    }
  }
}

}  // namespace xsched::ipc
