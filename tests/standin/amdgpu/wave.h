// A kernel's only wave. Its state is in the GPU's registers, or in the queue's save area while the queue is
// off the hardware: never in both.
#pragma once

#include <linux/kfd_ioctl.h>

#include <array>

#include "standin_amdgpu.h"

namespace standin_amdgpu {

class Wave {
 public:
  void Begin(standin_amdgpu_step step, const void* arguments) {
    step_ = step;
    arguments_ = arguments;
    registers_ = {};
  }
  bool runs() const { return step_ != nullptr; }
  // False: it has ended.
  bool Step();

  // REQUIRES a save area of the first die, which the program has made with the queue.
  void Save(const kfd_ioctl_create_queue_args& queue);
  void Restore(const kfd_ioctl_create_queue_args& queue);
  // Null: none is saved.
  static const void* SavedIn(const kfd_ioctl_create_queue_args& queue);

 private:
  standin_amdgpu_step step_ = nullptr;
  const void* arguments_ = nullptr;
  alignas(16) std::array<unsigned char, STANDIN_AMDGPU_STATE_SIZE> registers_{};
};

}  // namespace standin_amdgpu
