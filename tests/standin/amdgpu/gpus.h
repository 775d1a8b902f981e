// How the machine's GPUs are numbered (machine.py).
#pragma once

#include <cstdint>

namespace standin_amdgpu {

constexpr uint32_t kMaxGpus = 8;
constexpr uint32_t kFirstGpuId = 0x1000;
constexpr uint32_t kFirstRenderMinor = 128;
constexpr uint32_t kXccs = 4;  // dies of a GPU

}  // namespace standin_amdgpu
