#include "hal/cuda/shared_memory.h"

#include <atomic>

#include "base/log.h"
#include "base/mutex.h"

namespace xsched::cuda {
namespace {

// A fork's child has its own segment, and so registers anew.
struct Registration {
  std::atomic<const void*> memory{nullptr};  // null: not registered
  std::atomic<CUdeviceptr> device{0};
  std::atomic<CUcontext> context{nullptr};  // which it goes with
};
constinit Registration registration;
constinit Mutex mutex;

bool Register(const Functions& next, const XControlWords& words) {
  MutexLock lock(mutex);
  if (registration.memory.load(std::memory_order_relaxed) == words.memory) return true;
  CUcontext context = nullptr;
  CUdeviceptr device = 0;
  CUresult result = next.cuCtxGetCurrent(&context);
  if (result == CUDA_SUCCESS) {
    // Portable: one registration serves all contexts of the process, and addresses are the same in each.
    result = next.cuMemHostRegister_v2(words.memory, words.memory_size,
                                       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) result = CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) result = next.cuMemHostGetDevicePointer_v2(&device, words.memory, 0);
  if (result != CUDA_SUCCESS) {
    XSCHED_WARN("CUDA refused to share memory with its device (error %d): running unscheduled", result);
    return false;
  }
  registration.context.store(context, std::memory_order_relaxed);
  registration.device.store(device, std::memory_order_relaxed);
  registration.memory.store(words.memory, std::memory_order_release);
  return true;
}

}  // namespace

CUdeviceptr DeviceAddress(const Functions& next, const XControlWords& words, const void* word) {
  if (registration.memory.load(std::memory_order_acquire) != words.memory && !Register(next, words)) return 0;
  auto offset = static_cast<const char*>(word) - static_cast<const char*>(words.memory);
  return registration.device.load(std::memory_order_relaxed) + static_cast<CUdeviceptr>(offset);
}

void ForgetSharedMemory(CUcontext context) {
  MutexLock lock(mutex);
  if (registration.context.load(std::memory_order_relaxed) != context) return;
  registration.memory.store(nullptr, std::memory_order_release);
}

}  // namespace xsched::cuda
