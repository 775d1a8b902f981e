// What a GPU says of images. Runtimes lay out pitched memory by it; images themselves are refused
// (refused.c).
#pragma once

#include <hsa/hsa.h>

namespace standin_hsa {

hsa_status_t GetImageInfo(int attribute, void* value);

}  // namespace standin_hsa
