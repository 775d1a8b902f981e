// What the doctor does for CUDA (cli/platform.h).
#pragma once

#include <string>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/report.h"

namespace xsched::cli::cuda {

inline constexpr const char* kName = "CUDA";
inline constexpr const char* kShim = "libshimcuda.so";
inline constexpr const char* kDriver = "libcuda.so.1";

std::string Examine(Report& report);
void Probe(DeviceProbe& probe);

}  // namespace xsched::cli::cuda
