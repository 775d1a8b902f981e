// For tests of what must not wait for a file system that does not answer (a network's, or one of a process).
#pragma once

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

namespace xsched::testing {

// From now on, the process has to do without what may wait for the file system of this descriptor's file.
inline bool ForbidWaitingFor(int fd) {
  constexpr auto kNumber = offsetof(seccomp_data, nr);
  constexpr auto kDescriptor = offsetof(seccomp_data, args[0]);
  constexpr auto kFlagsOfStatx = offsetof(seccomp_data, args[2]);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kDescriptor),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(fd), 0, 7),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstat, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlagsOfStatx),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_STATX_DONT_SYNC, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ETIMEDOUT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace xsched::testing
