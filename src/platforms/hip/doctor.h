// What HIP's descriptor is made of (cli/platform.h): above all, what the doctor does.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/report.h"
#include "cli/kernel_device.h"

namespace xsched::cli::hip {

inline constexpr const char* kName = "HIP";
inline constexpr const char* kShim = "libshimhip.so";
inline constexpr const char* kKernelDriver = "/dev/kfd";

// Loads the runtime that programs use if they bring none, and returns its path. "": there is none.
std::string FindRuntime();

std::vector<KernelDevice> ListDevices(const std::string& root);
std::string Examine(Report& report);
void Probe(DeviceProbe& probe);

}  // namespace xsched::cli::hip
