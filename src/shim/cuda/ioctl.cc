// ioctl as the program and the driver's library call it: the driver's requests to the resource manager tell
// which channel groups the process has (level 3).
#include <dlfcn.h>
#include <stdarg.h>

#include <atomic>

#include "hal/cuda/observe.h"
#include "shim/common/dl_hooks.h"

namespace {

using Ioctl = int(int fd, unsigned long request, ...);

Ioctl* RealIoctl() {
  static constinit std::atomic<Ioctl*> real{nullptr};
  Ioctl* known = real.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = reinterpret_cast<Ioctl*>(xsched::shim::RealDlsym(RTLD_NEXT, "ioctl"));
    real.store(known, std::memory_order_release);
  }
  return known;
}

int NextIoctl(int fd, unsigned long request, void* argument) { return RealIoctl()(fd, request, argument); }

}  // namespace

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  int result = NextIoctl(fd, request, argument);
  if (xsched::cuda::rm::MayConcern(request)) [[unlikely]]
    CudaObserveRequest(fd, request, argument, result, NextIoctl);
  return result;
}
