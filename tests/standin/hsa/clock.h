// The agent's clock: nanoseconds, the same for the host and all devices.
#pragma once

#include <time.h>

#include <cstdint>

namespace standin_hsa {

constexpr uint64_t kTicksPerSecond = 1'000'000'000;

inline uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kTicksPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace standin_hsa
