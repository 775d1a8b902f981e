// The agents that there are: the host, then the GPUs.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace standin_hsa {

struct Settings {
  uint32_t gpus = 1;
  std::string isa = "gfx90a";
  size_t memory_per_gpu = size_t{16} << 30;
};
const Settings& TheSettings();

constexpr hsa_agent_t kHost{1};
constexpr uint64_t kFirstGpu = 2;
inline hsa_agent_t Gpu(uint32_t index) { return {kFirstGpu + index}; }
inline uint32_t IndexOf(hsa_agent_t gpu) { return static_cast<uint32_t>(gpu.handle - kFirstGpu); }
inline bool IsGpu(hsa_agent_t agent) {
  return agent.handle >= kFirstGpu && agent.handle < kFirstGpu + TheSettings().gpus;
}

}  // namespace standin_hsa
