// A segment all of whose pages are there: a test may register a queue without having reset its block.
#pragma once

#include <fcntl.h>

#include <stdexcept>
#include <utility>

#include "ipc/segment.h"

namespace xsched::ipc {

inline OwnedSegment PopulatedSegment() {
  Result<OwnedSegment> segment = CreateSegment();
  if (!segment) throw std::runtime_error(segment.error().text());
  if (fallocate(segment->memfd.get(), 0, 0, kSegmentSize) != 0)
    throw std::runtime_error("no memory for the segment");
  return std::move(*segment);
}

}  // namespace xsched::ipc
