// Buffers that KFD has given to the process. Their memory is in the file of a render node, at the offset that
// the program maps; addresses of the GPU are those of the process.
#pragma once

#include <linux/kfd_ioctl.h>

#include <cstdint>
#include <map>

namespace standin_amdgpu {

// Not thread-safe: the driver's lock is held.
class Memory {
 public:
  int Allocate(kfd_ioctl_alloc_memory_of_gpu_args& args);
  int Free(const kfd_ioctl_free_memory_of_gpu_args& args);
  int Map(kfd_ioctl_map_memory_to_gpu_args& args);
  int Unmap(kfd_ioctl_unmap_memory_from_gpu_args& args);
  int SetRange(const kfd_ioctl_svm_args& args);  // memory of the host that the GPUs may use (SVM)
  int Available(kfd_ioctl_get_available_memory_args& args) const;

  // Is there exactly this buffer, mapped for GPUs? The address may be anywhere in its first page.
  bool IsBuffer(uint64_t address, uint64_t size) const;
  // Are these bytes always mapped for GPUs, as memory of the host?
  bool IsRange(uint64_t address, uint64_t size) const;
  bool Has(uint64_t handle) const { return buffers_.count(handle) != 0; }

 private:
  struct Buffer {
    uint64_t address = 0;
    uint64_t size = 0;
    uint64_t offset = 0;  // in the render node's file
    uint32_t gpu = 0;
    uint32_t flags = 0;
    int maps = 0;
  };
  static bool IsInFile(const Buffer& buffer);

  std::map<uint64_t, Buffer> buffers_;   // by handle
  std::map<uint64_t, uint64_t> ranges_;  // address -> size
  uint64_t handles_ = 0;
  uint64_t end_ = uint64_t{1} << 32;  // of what was given away of the files
};

}  // namespace standin_amdgpu
