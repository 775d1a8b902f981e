#include "ipc/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/file_size.h"
#include "base/no_cancellation.h"
#include "base/system_calls.h"
#include "ipc/sealed_memory.h"

namespace xsched::ipc {

MappedSegment& MappedSegment::operator=(MappedSegment&& other) noexcept {
  std::swap(segment_, other.segment_);
  return *this;
}

MappedSegment::~MappedSegment() {
  if (segment_ != nullptr) munmap(segment_, kSegmentSize);
}

namespace {

Result<MappedSegment> Map(int memfd) {
  void* memory = mmap(nullptr, kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (memory == MAP_FAILED) return Error::FromErrno(errno, "cannot map the queues' shared memory");
  return MappedSegment(static_cast<Segment*>(memory));
}

// The first words of SegmentHeader.
struct SegmentStart {
  uint32_t magic;
  uint32_t version;
  uint32_t max_queues;
};
static_assert(offsetof(SegmentHeader, max_queues) == offsetof(SegmentStart, max_queues));

}  // namespace

Result<OwnedSegment> CreateSegment() {
  OwnedSegment owned;
  owned.memfd.Reset(MemfdCreate("xsched-queues", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!owned.memfd) return Error::FromErrno(errno, "cannot make shared memory for the queues");
  if (SetFileSize(owned.memfd.get(), kSegmentSize) != 0) {
    return Error::FromErrno(errno, "cannot size the queues' shared memory");
  }
  if (fcntl(owned.memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Error::FromErrno(errno, "cannot seal the queues' shared memory");
  }
  Result<MappedSegment> mapping = Map(owned.memfd.get());
  if (!mapping) return mapping.error();
  owned.mapping = std::move(*mapping);
  SegmentHeader& header = owned.mapping->header;
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.max_queues = kMaxQueues;
  return owned;
}

Result<MappedSegment> MapSegment(int memfd) {
  if (Result<> checked = CheckSealedMemory(memfd, kSegmentSize, "the segment"); !checked)
    return checked.error();
  // It is read and not looked at in the mapping: that would make the page if the client has not.
  SegmentStart start{};
  if (pread(memfd, &start, sizeof start, 0) != static_cast<ssize_t>(sizeof start))
    return Error::FromErrno(errno, "cannot read the segment");
  if (start.magic != kSegmentMagic || start.version != kSegmentVersion || start.max_queues != kMaxQueues)
    return Error::Make("the segment is of another version");
  return Map(memfd);
}

void RingScheduler(Segment& segment, uint32_t index, int doorbell) {
  // The counters must be visible before the mark: see control_block.h.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<uint64_t>& word = segment.header.dirty[index / 64];
  word.fetch_or(uint64_t{1} << (index % 64), std::memory_order_acq_rel);
  const uint64_t one = 1;
  const NoCancellation counted;
  // If the counter is full (EAGAIN), the doorbell has rung already.
  [[maybe_unused]] ssize_t written = write(doorbell, &one, sizeof one);
}

}  // namespace xsched::ipc
