// The parts of examining a platform that are the same for all platforms whose shims are preloaded.
#pragma once

#include <string>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/report.h"

namespace xsched::cli {

// Reports a problem, and returns it.
std::string Problem(Report& report, const char* about, const std::string& text);

// Checks the shim of a platform whose `runtime` was found. Returns the problem; empty: none.
std::string ShimProblem(Report& report, const char* about, const std::string& runtime, const char* shim);

// Reports what was found, and returns the problem if no device is scheduled. `version` says what
// probe.version is the version of. `why_no_device` is added to the error if there is no device.
std::string ExamineDevices(Report& report, const char* about, const DeviceProbe& probe,
                           const std::string& version, const std::string& why_no_device);

}  // namespace xsched::cli
