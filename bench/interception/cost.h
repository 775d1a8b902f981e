// Measures the cost of interception per call of a driver: our wrapper against the function that it wraps.
// Pairs of short runs alternate, and the median of their differences is used, so that changes of the
// machine's speed cancel out.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "interception/allocations.h"

namespace xsched::bench {

using Json = nlohmann::json;

inline void Check(int result, const std::string& what) {
  if (result != 0) throw std::runtime_error(what + ": error " + std::to_string(result));
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Prints and returns the cost. `settle` finishes the work that a run has left, so that it does not count in
// the next run.
template <typename Native, typename Wrapped, typename Settle>
Json Compare(const char* name, const Native& native, const Wrapped& wrapped, const Settle& settle) {
  constexpr int kCalls = 500;
  constexpr int kPairs = 501;
  using Clock = std::chrono::steady_clock;
  auto ns_per_call = [&](const auto& call) {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) Check(call(), name);
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kCalls;
    settle();
    return ns;
  };
  ns_per_call(native);
  ns_per_call(wrapped);
  std::vector<double> natives;
  std::vector<double> differences;
  natives.reserve(kPairs);
  differences.reserve(kPairs);
  const uint64_t before = Allocations();
  for (int i = 0; i < kPairs; ++i) {
    natives.push_back(ns_per_call(native));
    differences.push_back(ns_per_call(wrapped) - natives.back());
  }
  const uint64_t added = Allocations() - before;
  std::printf("  %-36s %8.1f ns added to %.0f (median of %d pairs), %llu heap allocations\n", name,
              Median(differences), Median(natives), kPairs, static_cast<unsigned long long>(added));
  std::fflush(stdout);
  return {{"call", name},
          {"native_ns", Median(natives)},
          {"added_ns", Median(differences)},
          {"allocations", added}};
}

// The threads of this process.
int64_t Threads();

// Runs each case in a separate process, so that cases do not affect each other. Returns the program's exit
// status: 1 if a case fails, or if XSched allocated memory in a call. `arguments`: [--json FILE].
struct Case {
  std::string name;
  std::function<Json()> measure;
};
int RunCases(const std::vector<Case>& cases, int argc, char** argv);

}  // namespace xsched::bench
