#include "cli/programs/detached.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system_calls.h"

namespace xsched::cli {

bool RunDetached(const std::function<void()>& work, int kept, int errors) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    // A grandchild in its own session.
    setsid();
    if (fork() != 0) _exit(0);
    const int null = open("/dev/null", O_RDWR);
    dup2(errors >= 0 ? errors : null, 2);
    for (int fd : {0, 1}) dup2(null, fd);
    if (kept >= 0 && kept != kKeptFd) dup2(kept, kKeptFd);
    if (kept >= 0) fcntl(kKeptFd, F_SETFD, 0);
    CloseDescriptors(kept >= 0 ? kKeptFd + 1 : kKeptFd);
    work();
    _exit(127);
  }
  waitpid(child, nullptr, 0);
  return true;
}

}  // namespace xsched::cli
