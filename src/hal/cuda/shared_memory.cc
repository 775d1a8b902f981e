#include "hal/cuda/shared_memory.h"

#include <sys/mman.h>

#include "base/array.h"
#include "base/fork_handler.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "preempt/api/launch.h"

namespace xsched::cuda {
namespace {

struct Registration {
  const void* memory;  // the mapped memory: a forked child has other memory
  void* mapping;       // `memory` itself, or the same pages once more
  CUcontext context;   // null: free to be registered
  CUdeviceptr device;  // 0: its context is being destroyed
};

constinit Mutex<LockRank::kCudaSharedMemory> mutex;
constinit NoDestroy<Array<Registration>> registrations GUARDED_BY(mutex);

// 0: it is not registered in the context.
CUdeviceptr RegisteredLocked(CUcontext context, const void* memory) REQUIRES(mutex) {
  for (const Registration& registration : *registrations) {
    if (registration.context == context && registration.memory == memory && registration.device != 0)
      return registration.device;
  }
  return 0;
}
CUdeviceptr Registered(CUcontext context, const void* memory) {
  MutexLock lock(mutex);
  return RegisteredLocked(context, memory);
}

// Null: none is free, and no further one can be made.
Registration* FreeMapping(void* memory, size_t size) REQUIRES(mutex) {
  bool known = false;
  for (Registration& registration : *registrations) {
    if (registration.memory != memory) continue;
    known = true;
    if (registration.context == nullptr) return &registration;
  }
  void* mapping = memory;
  if (known) {
    // With an old size of 0, this makes another mapping of the same pages.
    mapping = mremap(memory, 0, size, MREMAP_MAYMOVE);
    if (mapping == MAP_FAILED) return nullptr;
  }
  if (!registrations->Push({memory, mapping, nullptr, 0})) return nullptr;
  return &registrations->back();
}

CUresult Register(const Functions& next, size_t size, Registration* registration) REQUIRES(mutex) {
  CUresult result = next.cuMemHostRegister_v2(registration->mapping, size, CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result == CUDA_SUCCESS)
    result = next.cuMemHostGetDevicePointer_v2(&registration->device, registration->mapping, 0);
  return result;
}

}  // namespace

CUdeviceptr SharedMemoryIn(const Functions& next, CUcontext context, void* memory, size_t size) {
  if (const CUdeviceptr known = Registered(context, memory)) return known;
  static constinit ForkHandler handler = {[] { mutex.ResetAfterFork(); }};
  handler.Install();
  // The driver may wait for held commands of other contexts.
  const preempt::Barrier barrier;
  MutexLock lock(mutex);
  if (const CUdeviceptr known = RegisteredLocked(context, memory)) return known;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  while (Registration* registration = FreeMapping(memory, size)) {
    result = Register(next, size, registration);
    registration->context = context;
    if (result == CUDA_SUCCESS) return registration->device;
    registration->device = 0;
    // A context that seemed to be destroyed may still exist, with its registration.
    if (result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
      registration->context = nullptr;
      break;
    }
  }
  XSCHED_WARN("CUDA refused to share memory with its device (error %d): running unscheduled", result);
  return 0;
}

void ForgetSharedMemory(CUcontext context) {
  MutexLock lock(mutex);
  for (Registration& registration : *registrations) {
    if (registration.context == context) registration.device = 0;
  }
}

void ReuseSharedMemory(CUcontext context) {
  MutexLock lock(mutex);
  for (Registration& registration : *registrations) {
    if (registration.context == context && registration.device == 0) registration.context = nullptr;
  }
}

}  // namespace xsched::cuda
