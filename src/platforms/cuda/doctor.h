// What CUDA's descriptor is made of (cli/platform.h): above all, what the doctor does.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/report.h"
#include "cli/kernel_device.h"

namespace xsched::cli::cuda {

inline constexpr const char* kName = "CUDA";
inline constexpr const char* kShim = "libshimcuda.so";
inline constexpr const char* kDriver = "libcuda.so.1";

std::vector<KernelDevice> ListDevices(const std::string& root);
std::string Examine(Report& report);
void Probe(DeviceProbe& probe);

}  // namespace xsched::cli::cuda
