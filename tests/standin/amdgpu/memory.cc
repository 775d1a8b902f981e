#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <span>

#include "files.h"
#include "gpus.h"

namespace standin_amdgpu {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMemoryOfGpu = uint64_t{192} << 30;

uint64_t RoundUp(uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

}  // namespace

bool Memory::IsInFile(const Buffer& buffer) {
  return (buffer.flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)) != 0;
}

int Memory::Allocate(kfd_ioctl_alloc_memory_of_gpu_args& args) {
  const uint32_t gpu = args.gpu_id - kFirstGpuId;
  if (gpu >= CountGpus() || args.size == 0) return EINVAL;
  Buffer buffer{.address = args.va_addr, .size = args.size, .gpu = gpu, .flags = args.flags};
  if (IsInFile(buffer)) {
    buffer.offset = end_;
    end_ += RoundUp(args.size);
    args.mmap_offset = buffer.offset;
  } else if ((args.flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) {
    args.mmap_offset = 0;  // the first page of KFD's own file
  }
  args.handle = uint64_t{args.gpu_id} << 32 | ++handles_;
  buffers_[args.handle] = buffer;
  return 0;
}

int Memory::Free(const kfd_ioctl_free_memory_of_gpu_args& args) {
  auto found = buffers_.find(args.handle);
  if (found == buffers_.end()) return EINVAL;
  const Buffer& buffer = found->second;
  if (buffer.maps > 0) return EBUSY;
  if (IsInFile(buffer)) {
    fallocate(RenderFile(buffer.gpu), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(buffer.offset), static_cast<off_t>(RoundUp(buffer.size)));
  }
  buffers_.erase(found);
  return 0;
}

int Memory::Map(kfd_ioctl_map_memory_to_gpu_args& args) {
  auto found = buffers_.find(args.handle);
  if (found == buffers_.end()) return ENOMEM;
  Buffer& buffer = found->second;
  // What the program may not touch, it has reserved only. The GPU may.
  if ((buffer.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 &&
      (buffer.flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) == 0 &&
      mmap(reinterpret_cast<void*>(buffer.address), buffer.size, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, RenderFile(buffer.gpu), static_cast<off_t>(buffer.offset)) == MAP_FAILED) {
    return ENOMEM;
  }
  ++buffer.maps;
  args.n_success = args.n_devices;
  return 0;
}

int Memory::Unmap(kfd_ioctl_unmap_memory_from_gpu_args& args) {
  auto found = buffers_.find(args.handle);
  if (found == buffers_.end()) return ENODEV;
  found->second.maps = 0;
  args.n_success = args.n_devices;
  return 0;
}

int Memory::SetRange(const kfd_ioctl_svm_args& args) {
  if (args.op != KFD_IOCTL_SVM_OP_SET_ATTR || args.size == 0 || args.start_addr % kPage != 0 ||
      args.size % kPage != 0) {
    return EINVAL;
  }
  for (const kfd_ioctl_svm_attribute& attribute : std::span(args.attrs, args.nattr)) {
    if (attribute.type == KFD_IOCTL_SVM_ATTR_SET_FLAGS &&
        (attribute.value & KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED) != 0) {
      ranges_[args.start_addr] = args.size;
    }
  }
  return 0;
}

int Memory::Available(kfd_ioctl_get_available_memory_args& args) const {
  const uint32_t gpu = args.gpu_id - kFirstGpuId;
  if (gpu >= CountGpus()) return EINVAL;
  uint64_t used = 0;
  for (const auto& [handle, buffer] : buffers_) {
    if (buffer.gpu == gpu && (buffer.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0) used += RoundUp(buffer.size);
  }
  args.available = kMemoryOfGpu - used;
  return 0;
}

bool Memory::IsBuffer(uint64_t address, uint64_t size) const {
  return std::ranges::any_of(
      buffers_, [page = address / kPage * kPage, size = RoundUp(size)](const auto& entry) {
        const Buffer& buffer = entry.second;
        return buffer.maps > 0 && buffer.address == page && RoundUp(buffer.size) == size;
      });
}

bool Memory::IsRange(uint64_t address, uint64_t size) const {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return false;
  const auto& [begin, length] = *--next;
  return size <= length && address - begin <= length - size;
}

}  // namespace standin_amdgpu
