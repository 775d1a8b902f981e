// The GPU's clock: 100 MHz, as the driver says of this type.
#pragma once

#include <time.h>

#include <cstdint>

namespace standin_amdgpu {

inline uint64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}
inline uint64_t GpuClock() { return Nanoseconds(CLOCK_BOOTTIME) / 10; }

}  // namespace standin_amdgpu
