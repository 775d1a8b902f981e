#include "images.h"

#include <hsa/hsa_ext_image.h>

#include <algorithm>
#include <cstdint>

namespace standin_hsa {
namespace {

constexpr uint32_t kMaxWidth = 16384, kMaxDepth = 8192, kMaxHandles = 128;
constexpr uint32_t kPitchAlignment = 256;

// The attribute has `count` numbers: the extents of an image.
hsa_status_t Answer(void* value, uint32_t count, uint32_t number) {
  std::fill_n(static_cast<uint32_t*>(value), count, number);
  return HSA_STATUS_SUCCESS;
}

}  // namespace

hsa_status_t GetImageInfo(int attribute, void* value) {
  switch (attribute) {
    case HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS:
      return Answer(value, 1, kMaxWidth);
    case HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS:
      return Answer(value, 2, kMaxWidth);
    case HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS:
      return Answer(value, 3, kMaxDepth);
    case HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS:
      return Answer(value, 1, kMaxDepth);
    case HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES:
    case HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES:
    case HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS:
      return Answer(value, 1, kMaxHandles);
    case HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT:
      return Answer(value, 1, kPitchAlignment);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

}  // namespace standin_hsa
