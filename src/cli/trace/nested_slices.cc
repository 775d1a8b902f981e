#include "cli/trace/nested_slices.h"

#include <algorithm>

namespace xsched::cli {

NestedSlices::NestedSlices(std::vector<Slice> slices) : slices_(std::move(slices)), places_(slices_.size()) {
  std::ranges::stable_sort(slices_, [](const Slice& one, const Slice& other) {
    return one.begin != other.begin ? one.begin < other.begin : one.end > other.end;
  });
  std::vector<uint32_t> innermost;  // of each track, the slice that has not ended; kNone: there is none
  for (size_t i = 0; i < slices_.size(); ++i) {
    const auto takes = [&](uint32_t& inner) {
      while (inner != kNone && slices_[inner].end <= slices_[i].begin) inner = places_[inner].parent;
      return inner == kNone || slices_[inner].end >= slices_[i].end;
    };
    auto track = std::ranges::find_if(innermost, takes);
    if (track == innermost.end()) track = innermost.insert(track, kNone);
    places_[i] = {static_cast<uint32_t>(track - innermost.begin()), *track};
    *track = static_cast<uint32_t>(i);
  }
  tracks_ = innermost.size();
}

std::optional<size_t> NestedSlices::At(Duration at) const {
  const auto next = std::ranges::upper_bound(slices_, at, {}, &Slice::begin);
  if (next == slices_.begin()) return std::nullopt;
  auto index = static_cast<uint32_t>(next - slices_.begin() - 1);
  while (index != kNone && slices_[index].end < at) index = places_[index].parent;
  return index == kNone ? std::nullopt : std::optional<size_t>(index);
}

void NestedSlices::Visit(const std::function<void(size_t, size_t)>& begin,
                         const std::function<void(size_t, size_t)>& end) const {
  std::vector<uint32_t> innermost(tracks_, kNone);
  const auto end_until = [&](size_t track, uint32_t outer) {
    for (uint32_t& inner = innermost[track]; inner != outer; inner = places_[inner].parent) end(inner, track);
  };
  for (size_t i = 0; i < slices_.size(); ++i) {
    const Place& place = places_[i];
    end_until(place.track, place.parent);
    begin(i, place.track);
    innermost[place.track] = static_cast<uint32_t>(i);
  }
  for (size_t track = 0; track < tracks_; ++track) end_until(track, kNone);
}

}  // namespace xsched::cli
