#include "cli/distribution.h"

#include <algorithm>
#include <cmath>

namespace xsched::cli {
namespace {

constexpr double kPartsOfOctave = 1024;

double LogOf(Duration value) {
  return std::log2(static_cast<double>(std::max<Duration::rep>(value.count(), 1))) * kPartsOfOctave;
}

int PartOf(Duration value) { return static_cast<int>(std::lround(LogOf(value))); }

Duration MiddleOf(int part) { return Duration(std::llround(std::exp2(part / kPartsOfOctave))); }

}  // namespace

void Distribution::Add(Duration value) {
  ++counts_[PartOf(value)];
  ++count_;
  largest_ = std::max(largest_, value);
}

void Distribution::Add(const Distribution& other) {
  for (const auto& [part, count] : other.counts_) counts_[part] += count;
  count_ += other.count_;
  largest_ = std::max(largest_, other.largest_);
}

Duration Distribution::Percentile(double fraction) const {
  const auto rank = static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  uint64_t passed = 0;
  for (const auto& [part, count] : counts_) {
    passed += count;
    if (passed >= std::max<uint64_t>(rank, 1)) return std::min(MiddleOf(part), largest_);
  }
  return Duration::zero();
}

std::vector<uint64_t> Distribution::CountsBetween(Duration low, Duration high, size_t parts) const {
  std::vector<uint64_t> counts(parts);
  const double begin = LogOf(low);
  const double each = (LogOf(high) - begin) / static_cast<double>(parts);
  for (const auto& [part, count] : counts_) {
    const double place = std::clamp((part - begin) / each, 0.0, static_cast<double>(parts - 1));
    counts[static_cast<size_t>(place)] += count;
  }
  return counts;
}

}  // namespace xsched::cli
