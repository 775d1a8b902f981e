// System calls whose functions are missing from the glibc that XSched's archive asks for (2.17), although the
// kernel has them.
#pragma once

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xsched {

// memfd_create: glibc 2.27. Memory that nobody can execute, where the kernel can say so (6.3): some machines
// allow no other (sysctl vm.memfd_noexec).
inline int MemfdCreate(const char* name, unsigned flags) {
  constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL
  const auto memfd = static_cast<int>(syscall(SYS_memfd_create, name, flags | kNoExecSeal));
  if (memfd >= 0 || errno != EINVAL) return memfd;
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

// getrandom: glibc 2.25.
inline ssize_t GetRandom(void* memory, size_t size, unsigned flags) {
  return syscall(SYS_getrandom, memory, size, flags);
}

// Closes all descriptors from `first` to `last`, also where the kernel cannot close many at once.
inline void CloseDescriptorsOneByOne(int first, int last) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const int fd = atoi(entry->d_name);
    if (fd >= first && fd <= last && fd != dirfd(folder)) close(fd);
  }
  closedir(folder);
}

// The same. close_range: glibc 2.34, and Linux 5.9; RHEL 8 has 4.18.
inline void CloseDescriptors(int first, int last = INT_MAX) {
  if (syscall(SYS_close_range, first, last, 0) != 0) CloseDescriptorsOneByOne(first, last);
}

}  // namespace xsched
