// Reads a code object's description of its kernels: the MessagePack document in its note "AMDGPU". It
// understands maps, arrays, text and integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace standin_hsa {

struct Argument {
  std::string name;  // as in the source; often empty
  std::string kind;  // "global_buffer", "by_value", "hidden_…"
  size_t offset = 0;
  size_t size = 0;
};
// By the name of the kernel's symbol ("….kd"). Kernels that are not understood are left out.
std::map<std::string, std::vector<Argument>> ReadKernelArguments(std::span<const unsigned char> document);

}  // namespace standin_hsa
