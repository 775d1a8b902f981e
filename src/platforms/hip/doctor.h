// What the doctor does for HIP (cli/platform.h).
#pragma once

#include <string>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/report.h"

namespace xsched::cli::hip {

inline constexpr const char* kName = "HIP";
inline constexpr const char* kShim = "libshimhip.so";
inline constexpr const char* kKernelDriver = "/dev/kfd";

// Loads the runtime that programs use if they bring none, and returns its path. "": there is none.
std::string FindRuntime();

std::string Examine(Report& report);
void Probe(DeviceProbe& probe);

}  // namespace xsched::cli::hip
