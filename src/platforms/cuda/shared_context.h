// One context for several programs (`xsched run --shared-context`): NVIDIA's Multi-Process Service (MPS),
// which is started for the first program of a user and ended after the last one.
#pragma once

#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli::cuda {

// Makes sure that the service runs for as long as this process, or the program that it becomes, lives. Its
// files are in `folder`, which is made if it is missing. Returns the variables by which programs find it;
// none: programs find one that XSched has not started, by CUDA_MPS_PIPE_DIRECTORY or at its usual place.
// Throws CommandError.
std::vector<Variable> ShareContext(const std::string& folder);

}  // namespace xsched::cli::cuda
