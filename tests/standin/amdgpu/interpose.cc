// The C library's functions by which a process comes to the driver. Those that this library has instead pass
// on what is not the machine's.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver.h"
#include "drm.h"
#include "files.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))

namespace {

using namespace standin_amdgpu;

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int OpenAt(int folder, const char* path, int flags, mode_t mode) {
  if (std::optional<int> device = OpenDevice(path, flags)) return *device;
  const std::string real = RealPath(path);
  return static_cast<int>(syscall(SYS_openat, folder, real.empty() ? path : real.c_str(), flags, mode));
}

template <typename Opener>
auto WithRealPath(const char* path, Opener&& open) {
  const std::string real = RealPath(path);
  return open(real.empty() ? path : real.c_str());
}

bool MayBeForDriver(unsigned long request) {
  return _IOC_SIZE(request) != 0 && (_IOC_TYPE(request) == 'K' || _IOC_TYPE(request) == 'd');
}

// The fields that libdrm reads.
template <typename Stat>
int Describe(int fd, Stat* info, int result) {
  uint64_t rdev = 0;
  if (result == 0 && DescribeDevice(fd, &rdev)) {
    info->st_mode = S_IFCHR | 0666;
    info->st_rdev = rdev;
  }
  return result;
}

}  // namespace

extern "C" {

STANDIN_EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(AT_FDCWD, path, flags, mode);
}
STANDIN_EXPORT int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(AT_FDCWD, path, flags, mode);
}
STANDIN_EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(folder, path, flags, mode);
}
STANDIN_EXPORT FILE* fopen(const char* path, const char* mode) {
  static const auto next = Next<FILE*(const char*, const char*)>("fopen");
  return WithRealPath(path, [mode](const char* real) { return next(real, mode); });
}
STANDIN_EXPORT FILE* fopen64(const char* path, const char* mode) {
  static const auto next = Next<FILE*(const char*, const char*)>("fopen64");
  return WithRealPath(path, [mode](const char* real) { return next(real, mode); });
}
STANDIN_EXPORT DIR* opendir(const char* path) {
  static const auto next = Next<DIR*(const char*)>("opendir");
  return WithRealPath(path, [](const char* real) { return next(real); });
}
STANDIN_EXPORT int access(const char* path, int mode) noexcept {
  return WithRealPath(path, [mode](const char* real) {
    return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, real, mode));
  });
}
// The versions that libraries built with glibc before 2.33 call, and the others.
STANDIN_EXPORT int __fxstat64(int version, int fd, struct stat64* info) noexcept {
  static const auto next = Next<int(int, int, struct stat64*)>("__fxstat64");
  return Describe(fd, info, next(version, fd, info));
}
STANDIN_EXPORT int fstat64(int fd, struct stat64* info) noexcept {
  static const auto next = Next<int(int, struct stat64*)>("fstat64");
  return Describe(fd, info, next(fd, info));
}
STANDIN_EXPORT int __xstat64(int version, const char* path, struct stat64* info) noexcept {
  static const auto next = Next<int(int, const char*, struct stat64*)>("__xstat64");
  return WithRealPath(path, [&](const char* real) { return next(version, real, info); });
}

STANDIN_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const DeviceFile file = MayBeForDriver(request) ? Identify(fd) : DeviceFile{};
  int error = 0;
  switch (file.kind) {
    case FileKind::kForeign:
      return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
    case FileKind::kKfd:
      error = PerformKfd(request, argument);
      break;
    case FileKind::kRender:
      error = PerformDrm(file.index, request, argument);
      break;
  }
  if (error == 0) return 0;
  errno = error;
  return -1;
}
}
