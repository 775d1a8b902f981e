#include "server/process_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

namespace xsched::server {
namespace {

// A line of /proc/PID/stat: "pid (name) S …".
class Stat {
 public:
  explicit Stat(pid_t pid) {
    if (pid <= 0) return;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
    if (!file) return;
    const ssize_t length = read(file.get(), text_, sizeof text_ - 1);
    text_[length < 0 ? 0 : length] = '\0';
  }
  // As numbered in proc(5), from 3 (the state). Null: there is none.
  const char* Field(int number) const {
    // The name may contain any character, also a parenthesis.
    const char* at = strrchr(text_, ')');
    for (int i = 2; at != nullptr && i < number; ++i) {
      at = strchr(at, ' ');
      if (at != nullptr) ++at;
    }
    return at;
  }

 private:
  char text_[512] = "";
};

}  // namespace

bool IsStopped(pid_t pid) {
  const Stat stat(pid);
  const char* state = stat.Field(3);
  return state != nullptr && (*state == 'T' || *state == 't');
}

int CpuPriorityOf(pid_t pid) {
  // The kernel's priority is 20 + nice for usual processes, and below 0 for real-time ones: the more urgent,
  // the lower.
  constexpr int kOfNice0 = 20;
  const Stat stat(pid);
  const char* priority = stat.Field(18);
  return priority == nullptr ? 0 : kOfNice0 - atoi(priority);
}

uint64_t StartOf(pid_t pid) {
  const Stat stat(pid);
  const char* start = stat.Field(22);
  if (start != nullptr) return strtoull(start, nullptr, 10);
  // Some are hidden in /proc, and yet the kernel says that they exist.
  return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH ? kNoProcess : 0;
}

std::optional<ProcessUsage> UsageOf(pid_t pid) {
  const Stat stat(pid);
  const char* user = stat.Field(14);
  const char* system = stat.Field(15);
  const char* pages = stat.Field(24);
  if (user == nullptr || system == nullptr || pages == nullptr) return std::nullopt;
  const double ticks = strtod(user, nullptr) + strtod(system, nullptr);
  return ProcessUsage{ticks / static_cast<double>(sysconf(_SC_CLK_TCK)),
                      strtod(pages, nullptr) * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

}  // namespace xsched::server
