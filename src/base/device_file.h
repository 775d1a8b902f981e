// Which device a descriptor's file is.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <optional>

namespace xsched {

// The number of the character device; empty: the file is none, or was not opened to be used (O_PATH). The
// file may be on a file system whose server hangs, so what the kernel does not know at once is not asked for.
// statx: glibc 2.28.
inline std::optional<dev_t> DeviceFileOf(int fd) {
  struct statx status {};
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 ||
      syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
      !S_ISCHR(status.stx_mode))
    return std::nullopt;
  return makedev(status.stx_rdev_major, status.stx_rdev_minor);
}

}  // namespace xsched
