// Finds the names of kernels as a debugger does: in the list of code objects that ROCr keeps for debuggers.
#pragma once

#include <cstdint>
#include <string>

namespace standin_amdgpu {

// The kernel whose descriptor is at this address, without ".kd". "": unknown. `r_debug` may be 0.
std::string NameOfKernel(uint64_t r_debug, uint64_t descriptor);

}  // namespace standin_amdgpu
