#include "cli/programs/detached.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
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

void LeaveStarter() {
  static_cast<void>(!chdir("/"));
  // The kernel leaves out the processors that there are not, and those that the control group does not have.
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  sched_setaffinity(0, sizeof all, &all);
  // By these, it would be ended or get no memory one day. The descriptors' limit it raises itself.
  for (const auto resource : {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
}

}  // namespace xsched::cli
