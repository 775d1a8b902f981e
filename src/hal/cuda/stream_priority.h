// Computes the driver's priority of a stream, from the one that the program gave it and the urgency of its
// hints.
//
// Each step of urgency is one step of the driver's priority. The driver has few of them (6 on an H200). If
// these are not enough, the streams get adjacent priorities in their order, as far as possible.
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

// The priority of a stream that wants `wanted` (the program's priority minus the steps). for_each(visit)
// calls visit(wanted) for each stream, including this one.
template <typename ForEach>
int PriorityAmong(int wanted, PriorityRange range, ForEach&& for_each) {
  // From the most urgent stream to this one: each gets what it wants, or the priority behind the one before
  // it.
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
