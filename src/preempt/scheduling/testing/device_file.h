// A device file that most machines have, for tests.
#pragma once

#include <fcntl.h>

#include "base/fd.h"

namespace xsched::preempt::testing {

// Empty: there is none that this user may open.
inline UniqueFd OpenDeviceFile(int flags = O_RDONLY) {
  for (const char* path : {"/dev/autofs", "/dev/fuse", "/dev/net/tun", "/dev/loop-control"}) {
    if (UniqueFd file(open(path, flags | O_CLOEXEC)); file) return file;
  }
  return UniqueFd();
}

}  // namespace xsched::preempt::testing
