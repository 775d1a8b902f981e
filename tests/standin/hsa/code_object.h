// Code objects (ELF files for the GPU): loaded into memory of the GPU, and their symbols. Their instructions
// are never run.
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
// The kernel whose descriptor lies at this address of the GPU.
std::optional<KernelCode> FindKernelCode(uint64_t descriptor);

}  // namespace standin_hsa
