// Makes files larger inside a process that is not ours.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

namespace xsched {

// True if the process may make files of this size (RLIMIT_FSIZE). Where it may not, the kernel also sends a
// signal that ends the program (SIGXFSZ).
inline bool MayHaveSize(size_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

// As ftruncate, but fails with EFBIG without a signal.
inline int SetFileSize(int fd, size_t size) {
  if (MayHaveSize(size)) return ftruncate(fd, static_cast<off_t>(size));
  errno = EFBIG;
  return -1;
}

// Also gets the room for it, so that later no access to a mapping fails because the file system is full: that
// would end the program (SIGBUS).
inline int AllocateFile(int fd, size_t size) {
  errno = MayHaveSize(size) ? posix_fallocate(fd, 0, static_cast<off_t>(size)) : EFBIG;
  return errno == 0 ? 0 : -1;
}

}  // namespace xsched
