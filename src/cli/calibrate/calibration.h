// Measures the parameters of the device model: which programs run beside each other, and what follows from
// what they see. It knows of no device: `machine` runs the programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/calibrate/experiment.h"

namespace xsched::cli {

struct FittedParameter {
  std::string name;             // as in the device's file
  std::optional<double> value;  // nanoseconds, or a number; none: it cannot be measured on this machine
  double spread = 0;
  std::string how;  // it was measured, or why it was not
};

struct Calibration {
  int level = 1;
  std::vector<FittedParameter> parameters;
};

// `length` of each measurement. There are about ten. Throws CommandError if the device does too little in it.
Calibration Calibrate(Machine& machine, Duration length);

}  // namespace xsched::cli
