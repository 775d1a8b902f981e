// Standard input, output and error are open, whoever started this program.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace xsched {

// Call it first in main. Otherwise what is opened next, such as a socket, has the number of one that is
// closed, and gets what is meant for people. Programs that this one becomes or starts find it closed again.
inline void OpenStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // A new descriptor has the lowest number that is free: this one.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

}  // namespace xsched
