// Keeps clients from having memory charged to the server by their segments. The kernel charges a page of
// shared memory to whoever touches it first, and for as long as the memory exists, which is as long as some
// client keeps it. A client may leave pages out, and may take them away again (fallocate), and do this with
// any number of segments. So the server makes no page of a segment:
//
//   access to a page that is missing -> userfaultfd: SIGBUS -> a private page of zeros in its place, which
//   ends with the mapping -> the client loses its connection (TakeTorn)
//
// It needs a userfaultfd for accesses of this program (Linux 5.11), which some containers refuse. Without it,
// the server makes such pages, as everybody does.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "ipc/segment.h"

namespace xsched::server {

class SegmentGuard {
 public:
  // A segment that is guarded while this object lives. REQUIRES: the segment stays mapped until then.
  class Watched {
   public:
    Watched() = default;
    explicit Watched(const ipc::Segment* segment) : segment_(segment) {}
    Watched(Watched&& other) noexcept : segment_(other.segment_) { other.segment_ = nullptr; }
    Watched& operator=(Watched&& other) noexcept;
    ~Watched();

   private:
    const ipc::Segment* segment_ = nullptr;
  };

  // It guards what the thread that makes it does with segments.
  SegmentGuard();
  SegmentGuard(const SegmentGuard&) = delete;
  SegmentGuard& operator=(const SegmentGuard&) = delete;

  // False: this system has no such guard, and pages are made.
  bool works() const { return static_cast<bool>(faults_); }
  // Guards the segment of this connection from now on. The error says why it cannot be guarded here although
  // others are.
  Result<Watched> Watch(const ipc::Segment& segment, uint64_t connection);
  // `visit(connection)` for each in whose segment a page was missing since the last call. All segments are
  // looked at once, and none if no page was missing.
  template <typename Visit>
  static void TakeTorn(Visit&& visit) {
    if (!AnyTorn()) return;
    for (uintptr_t from = 0;;) {
      const uint64_t connection = NextTorn(from);
      if (connection == 0) return;
      visit(connection);
    }
  }

 private:
  // True if any was torn since the last call.
  static bool AnyTorn();
  // The first torn one whose segment is at `from` or behind it; `from` is behind it then. 0: there is none.
  static uint64_t NextTorn(uintptr_t& from);

  UniqueFd faults_;
};

}  // namespace xsched::server
