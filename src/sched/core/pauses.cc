#include "sched/core/pauses.h"

#include <algorithm>

namespace xsched::sched {
namespace {

// If a queue resumes early although a long pause was predicted, kHarderToTrust times as many long pauses in a
// row are required before one is predicted again, at most kHardestToTrust.
constexpr int kHarderToTrust = 4;
constexpr int kHardestToTrust = 4096;

}  // namespace

bool Pauses::End(TimePoint now, Duration grace) {
  if (now - began_ > grace) {
    long_ones_ = std::min(long_ones_ + 1, kHardestToTrust);
    return false;
  }
  if (long_ones_ >= trusted_after_)
    trusted_after_ = std::min(trusted_after_ * kHarderToTrust, kHardestToTrust);
  long_ones_ = 0;
  return true;
}

}  // namespace xsched::sched
