// How often tests try what they try many times.
#pragma once

#include <algorithm>

namespace xsched {

// `count`, or a tenth under sanitizers and emulators, where everything takes many times as long, and where
// tests look for other mistakes than those that only one of many tries shows.
constexpr int Tries(int count) {
#ifdef XSCHED_FEWER_TRIES
  return std::max(1, count / 10);
#else
  return count;
#endif
}

}  // namespace xsched
