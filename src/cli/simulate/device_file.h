// Files with the parameters of devices: those of the user, and those that XSched has for measured devices.
#pragma once

#include <string>

#include "cli/simulate/json_line.h"
#include "sched/sim/device_parameters.h"

namespace xsched::cli {

// Changes the parameters that `object` names, and leaves the others.
void ReadParameters(const JsonLine& object, sched::sim::DeviceParameters& parameters);

// The device of that file. What it does not say is as in KnownDevice.
sched::sim::DeviceParameters ReadDevice(const std::string& path);

// The measured device of that platform; an ideal one where there is none.
sched::sim::DeviceParameters KnownDevice(const std::string& platform);

}  // namespace xsched::cli
