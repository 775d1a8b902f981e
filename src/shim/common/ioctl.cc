#include "shim/common/ioctl.h"

#include <dlfcn.h>
#include <stdarg.h>

#include <atomic>

#include "shim/common/dl_hooks.h"

namespace xsched::shim {
namespace {

using Ioctl = int(int fd, unsigned long request, ...);

Ioctl* RealIoctl() {
  static constinit std::atomic<Ioctl*> real{nullptr};
  Ioctl* known = real.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = reinterpret_cast<Ioctl*>(RealDlsym(RTLD_NEXT, "ioctl"));
    real.store(known, std::memory_order_release);
  }
  return known;
}

}  // namespace

int NextIoctl(int fd, unsigned long request, void* argument) { return RealIoctl()(fd, request, argument); }

}  // namespace xsched::shim

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  return xsched::shim::PerformIoctl(fd, request, argument);
}
