// Requests to KFD that are newer than the header of some distributions: numbers and layouts of
// linux/kfd_ioctl.h 1.13.
#pragma once

#include <linux/kfd_ioctl.h>

namespace standin_amdgpu {

constexpr unsigned kExportDmabuf = 0x24;
constexpr unsigned kRuntimeEnable = 0x25;

struct RuntimeEnable {
  uint64_t r_debug;  // where ROCr lists its code objects, as the dynamic linker lists libraries
  uint32_t mode_mask;
  uint32_t capabilities_mask;
};

// The head of each die's part of a queue's save area. KFD and the hardware write the first four.
struct SaveAreaHeader {
  uint32_t control_stack_offset;
  uint32_t control_stack_size;
  uint32_t wave_state_offset;
  uint32_t wave_state_size;
  uint32_t debug_offset;
  uint32_t debug_size;
  uint64_t error_payload;
  uint32_t error_event;
  uint32_t reserved;
};
static_assert(sizeof(SaveAreaHeader) == 40);

}  // namespace standin_amdgpu
