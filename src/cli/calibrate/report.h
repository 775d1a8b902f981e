// What `xsched calibrate` found, as the device's file (docs/simulator.md) and as a table. Pure.
#pragma once

#include <string>

#include "cli/calibrate/calibration.h"

namespace xsched::cli {

struct CalibratedDevice {
  std::string name;
  std::string platform;
  Calibration calibration;
};

std::string CalibrationJson(const CalibratedDevice& device);
std::string CalibrationText(const CalibratedDevice& device);

}  // namespace xsched::cli
