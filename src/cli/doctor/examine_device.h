// The parts of examining a platform that are the same for those whose shims are preloaded.
#pragma once

#include <string>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/report.h"

namespace xsched::cli {

// Reports a problem, and returns it.
std::string Problem(Report& report, const char* about, const std::string& text);

// `runtime` is here: is the shim? Returns the problem; empty: none.
std::string ShimProblem(Report& report, const char* about, const std::string& runtime, const char* shim);

// Reports what was found, and returns the problem if no device is scheduled. `version` names what
// probe.version is of; `why_no_device` is added to an error that left no device.
std::string ExamineDevices(Report& report, const char* about, const DeviceProbe& probe,
                           const std::string& version, const std::string& why_no_device);

}  // namespace xsched::cli
