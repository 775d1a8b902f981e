// What the agents say of themselves: figures of an MI210, as far as programs ask for them.
#include "agent.h"

#include <hsa/hsa_ext_amd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clock.h"
#include "entry.h"
#include "images.h"
#include "memory.h"
#include "newer.h"

namespace standin_hsa {
namespace {

Settings ReadSettings() {
  auto number = [](const char* name, size_t otherwise) {
    const char* text = getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  Settings settings;
  settings.gpus = static_cast<uint32_t>(number("STANDIN_HSA_DEVICES", settings.gpus));
  settings.memory_per_gpu = number("STANDIN_HSA_MEMORY_MB", settings.memory_per_gpu >> 20) << 20;
  if (const char* isa = getenv("STANDIN_HSA_ISA")) settings.isa = isa;
  return settings;
}

// gfx10 and later: gfx9 is GCN and CDNA.
bool IsRdna() { return TheSettings().isa.starts_with("gfx1"); }

// Features as the real agent names them; the code objects of programs and libraries are matched against
// these.
std::string IsaName() {
  return "amdgcn-amd-amdhsa--" + TheSettings().isa + (IsRdna() ? "" : ":sramecc+:xnack-");
}

template <typename T>
hsa_status_t Answer(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t AnswerText(void* to, const std::string& text) {
  std::memcpy(to, text.c_str(), text.size() + 1);
  return HSA_STATUS_SUCCESS;
}

}  // namespace

const Settings& TheSettings() {
  static const auto* const settings = new Settings(ReadSettings());
  return *settings;
}

}  // namespace standin_hsa

using namespace standin_hsa;

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
  HSA_ENTRY();
  hsa_status_t status = callback(kHost, data);
  for (uint32_t i = 0; i < TheSettings().gpus && status == HSA_STATUS_SUCCESS; ++i)
    status = callback(Gpu(i), data);
  return status;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value) {
  HSA_ENTRY();
  const bool gpu = IsGpu(agent);
  const uint32_t index = gpu ? IndexOf(agent) : 0;
  char text[64];
  switch (static_cast<int>(attribute)) {
    case HSA_AGENT_INFO_NAME:
      return AnswerText(value, gpu ? TheSettings().isa : "CPU");
    case HSA_AGENT_INFO_VENDOR_NAME:
      return AnswerText(value, "AMD");
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
      return AnswerText(value, "Software HSA agent");
    case HSA_AMD_AGENT_INFO_UUID:
      std::snprintf(text, sizeof text, "GPU-%016x", index + 1);
      return AnswerText(value, text);
    case HSA_AGENT_INFO_DEVICE:
      return Answer(value, gpu ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU);
    case HSA_AGENT_INFO_PROFILE:
      return Answer(value, HSA_PROFILE_BASE);
    case HSA_AGENT_INFO_NODE:
    case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
      return Answer<uint32_t>(value, gpu ? index + 1 : 0);
    case HSA_AMD_AGENT_INFO_BDFID:
      return Answer<uint32_t>(value, (5 + index) << 8);
    case HSA_AMD_AGENT_INFO_DOMAIN:
      return Answer<uint32_t>(value, 0);
    case HSA_AMD_AGENT_INFO_CHIP_ID:
      return Answer<uint32_t>(value, 0x740f);
    case HSA_AMD_AGENT_INFO_ASIC_REVISION:
      return Answer<uint32_t>(value, 1);
    case kAgentAsicFamilyId:
      return Answer<uint32_t>(value, 0);
    case HSA_AGENT_INFO_VERSION_MAJOR:
    case HSA_AGENT_INFO_VERSION_MINOR:
      return Answer<uint16_t>(value, 1);
    case HSA_AGENT_INFO_EXTENSIONS:
      std::memset(value, 0, 128);
      if (gpu) *static_cast<uint8_t*>(value) = 1 << HSA_EXTENSION_IMAGES;
      return HSA_STATUS_SUCCESS;
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
      return Answer<uint32_t>(value, IsRdna() ? 32 : 64);
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
      return Answer<uint32_t>(value, 1024);
    case HSA_AGENT_INFO_WORKGROUP_MAX_DIM: {
      const uint16_t dimensions[3] = {1024, 1024, 1024};
      return Answer(value, dimensions);
    }
    case HSA_AGENT_INFO_GRID_MAX_DIM:
      return Answer(value, hsa_dim3_t{UINT32_MAX, UINT32_MAX, UINT32_MAX});
    case HSA_AGENT_INFO_GRID_MAX_SIZE:
      return Answer<uint32_t>(value, UINT32_MAX);
    case HSA_AGENT_INFO_QUEUES_MAX:
      return Answer<uint32_t>(value, 128);
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
      return Answer<uint32_t>(value, 64);
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
      return Answer<uint32_t>(value, 131072);
    case HSA_AGENT_INFO_CACHE_SIZE: {
      const uint32_t sizes[4] = {16 << 10, 8 << 20, 0, 0};
      return Answer(value, sizes);
    }
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
      return Answer<uint32_t>(value, 64);
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
    case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT:
      return Answer<uint32_t>(value, 104);
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
      return Answer<uint32_t>(value, 32);
    case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
      return Answer<uint32_t>(value, 4);
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
      return Answer<uint32_t>(value, 8);
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
      return Answer<uint32_t>(value, 1);
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
      return Answer<uint32_t>(value, 1700);
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
      return Answer<uint32_t>(value, 1600);
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
      return Answer<uint32_t>(value, 4096);
    case kAgentTimestampFrequency:
      return Answer<uint64_t>(value, kTicksPerSecond);
    case kAgentMemoryAvailable:
      return Answer<uint64_t>(value, AvailableMemory(agent));
    case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
      return Answer(value, true);
    case HSA_AMD_AGENT_INFO_HDP_FLUSH:
      return Answer(value, hsa_amd_hdp_flush_t{});
    case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
      return Answer(value, false);
    case kAgentSdmaEngines:
    case kAgentXgmiSdmaEngines:
      return Answer<uint32_t>(value, 2);
    case kAgentXccs:
      return Answer<uint32_t>(value, 1);
    case kAgentNearestCpu:
      return Answer(value, kHost);
    case kAgentScratchLimitMax:
    case kAgentScratchLimitCurrent:
      return Answer<uint64_t>(value, uint64_t{4} << 30);
    case kAgentMemoryProperties:
    case kAgentAqlExtensions:
      return Answer<uint64_t>(value, 0);
    default:
      return gpu ? GetImageInfo(attribute, value) : HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t, void*),
                                    void* data) {
  HSA_ENTRY();
  return IsGpu(agent) ? callback({1}, data) : HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_isa_get_info_alt(hsa_isa_t, hsa_isa_info_t attribute, void* value) {
  HSA_ENTRY();
  switch (attribute) {
    case HSA_ISA_INFO_NAME_LENGTH:
      return Answer(value, static_cast<uint32_t>(IsaName().size() + 1));
    case HSA_ISA_INFO_NAME:
      return AnswerText(value, IsaName());
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
hsa_status_t hsa_agent_extension_supported(uint16_t, hsa_agent_t, uint16_t, uint16_t, bool* supported) {
  HSA_ENTRY();
  *supported = false;
  return HSA_STATUS_SUCCESS;
}
