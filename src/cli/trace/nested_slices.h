// Slices of one thread on as few tracks as show them all: those of one track nest, or follow each other. What
// overlaps otherwise goes to a further track. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace xsched::cli {

struct Slice {
  Duration begin;
  Duration end;       // not before `begin`
  uint32_t name = 0;  // these two say what it is, in numbers of the owner
  uint32_t category = 0;
};

class NestedSlices {
 public:
  // Slices in any order.
  explicit NestedSlices(std::vector<Slice> slices);

  // In the order in which they begin; what contains others comes before them.
  const std::vector<Slice>& slices() const { return slices_; }
  size_t tracks() const { return tracks_; }

  // The innermost slice at this time, as far as one track knows.
  std::optional<size_t> At(Duration at) const;

  // Calls begin(index, track) and end(index, track), for each track in the order of time.
  void Visit(const std::function<void(size_t, size_t)>& begin,
             const std::function<void(size_t, size_t)>& end) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Place {
    uint32_t track = 0;
    uint32_t parent = kNone;  // the slice around it on its track
  };

  std::vector<Slice> slices_;
  std::vector<Place> places_;
  size_t tracks_ = 0;
};

}  // namespace xsched::cli
