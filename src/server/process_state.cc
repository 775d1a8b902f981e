#include "server/process_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

namespace xsched::server {

bool IsStopped(pid_t pid) {
  if (pid <= 0) return false;
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  char text[512];
  ssize_t length = read(file.get(), text, sizeof text - 1);
  if (length <= 0) return false;
  text[length] = '\0';
  // "pid (name) S …": the name may hold anything, a parenthesis included.
  const char* name_end = strrchr(text, ')');
  if (name_end == nullptr || name_end[1] != ' ') return false;
  return name_end[2] == 'T' || name_end[2] == 't';
}

}  // namespace xsched::server
