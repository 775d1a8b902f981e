// What kernels do (standin_amdgpu.h), and which kernel a packet means. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "standin_amdgpu.h"

namespace standin_amdgpu {

struct Kernel {
  std::string name;  // "": not known
  standin_amdgpu_function function = nullptr;
  standin_amdgpu_step step = nullptr;
};

// ROCr has said where it lists the code objects that it has loaded (a struct r_debug).
void UseCodeObjectsOf(uint64_t r_debug);
// The kernel of this descriptor begins.
Kernel BeginKernel(uint64_t descriptor);

}  // namespace standin_amdgpu
