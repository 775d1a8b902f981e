// Which of the driver's priorities a stream gets, from what the program gave it and how urgent hints make it.
//
// Each step of urgency is one of the driver's. The driver has few of them (6 on an H200): where they do not
// suffice, the streams' order is kept as far as they do, by places that follow each other.
//
//   the program's   0 -2  0 -2      wanted        0  -2 -10 -12
//   steps           0  0 10 10      of 0 … -5     0  -2  -4  -5
//
// Pure. As in CUDA, less is more urgent.
#pragma once

#include <algorithm>
#include <climits>

namespace xsched::cuda {

struct PriorityRange {
  int least;
  int greatest;
};

// For a stream that wants `wanted` (the program's less the steps). for_each(visit) calls visit(wanted) for
// each stream, this one too.
template <typename ForEach>
int PriorityAmong(int wanted, PriorityRange range, ForEach&& for_each) {
  // From the most urgent wish to this one: each gets what it wants, or the place behind the one before it.
  int place = range.greatest - 1;
  for (int wish = INT_MIN; wish < wanted && place < range.least;) {
    int next = wanted;
    for_each([&](int other) {
      if (other > wish) next = std::min(next, other);
    });
    wish = next;
    place = std::max(wish, place + 1);
  }
  return std::min(place, range.least);
}

}  // namespace xsched::cuda
