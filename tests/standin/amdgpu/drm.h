// What libdrm asks of a render node. Returns 0 or an error as of errno.
#pragma once

#include <cstdint>

namespace standin_amdgpu {

int PerformDrm(uint32_t gpu, unsigned long request, void* argument);

}  // namespace standin_amdgpu
