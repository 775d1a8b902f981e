// Code objects (ELF files for the GPU). They are loaded into memory of the GPU, and have symbols. Their
// instructions are never run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metadata.h"

namespace standin_hsa {

struct KernelCode {
  std::string name;  // without ".kd"
  std::vector<Argument> arguments;
};
// The kernel whose descriptor is at this address of the GPU.
std::optional<KernelCode> FindKernelCode(uint64_t descriptor);

}  // namespace standin_hsa
