// Making a segment (client) and mapping somebody else's (server).
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
  // Leaves the mapping where it is.
  void Forget() { segment_ = nullptr; }

 private:
  Segment* segment_ = nullptr;
};

struct OwnedSegment {
  UniqueFd memfd;  // sealed: F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
  MappedSegment mapping;
};

// The client's end. All blocks are zero, so their gates are closed: who gives a block to a queue opens it
// first. Pages are used only as queues are.
Result<OwnedSegment> CreateSegment();

// The server's end: refuses what is not a sealed memfd of exactly kSegmentSize with this version's header, so
// that no later access can fault or leave it.
Result<MappedSegment> MapSegment(int memfd);

// Marks queue `index` and rings `doorbell` (an eventfd). Client's end; async-signal-safe.
void RingScheduler(Segment& segment, uint32_t index, int doorbell);

// Calls visit(index) for each marked queue and clears the marks. Scheduler's end.
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
