#include "cli/simulate/arrivals.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace xsched::cli {
namespace {

// In (0, 1]. The standard library's distributions differ between implementations; its engines do not.
double Uniform(std::mt19937_64& engine) {
  return (static_cast<double>(engine() >> 11) + 1) / static_cast<double>(uint64_t{1} << 53);
}

}  // namespace

std::vector<Duration> TimesOf(const Arrivals& arrivals) {
  std::vector<Duration> times;
  std::mt19937_64 engine(arrivals.seed);
  const auto part = [](Duration time, double factor) {
    return Duration(static_cast<int64_t>(static_cast<double>(time.count()) * factor));
  };
  for (Duration at = arrivals.from; at < arrivals.until;) {
    if (arrivals.poisson) {
      at += std::max(Duration(1), part(arrivals.period, -std::log(Uniform(engine))));
      if (at < arrivals.until) times.push_back(at);
    } else {
      const Duration late = at + part(arrivals.jitter, Uniform(engine));
      if (late < arrivals.until) times.push_back(late);
      at += arrivals.period;
    }
  }
  // Each of the others comes after the one before.
  if (!arrivals.poisson) std::sort(times.begin(), times.end());
  return times;
}

}  // namespace xsched::cli
