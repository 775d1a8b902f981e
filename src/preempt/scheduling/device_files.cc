#include "preempt/scheduling/device_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

namespace xsched::preempt {
namespace {

bool IsOfEverybody(dev_t file) {
  constexpr unsigned kMemory = 1;  // /dev/null, /dev/zero, …
  constexpr unsigned kTerminals[] = {4, 5};
  constexpr unsigned kFirstPty = 128;
  constexpr unsigned kLastPty = 143;
  const unsigned number = major(file);
  return number == kMemory || number == kTerminals[0] || number == kTerminals[1] ||
         (number >= kFirstPty && number <= kLastPty);
}

// The device that the descriptor's file is; 0: it is no device, or was not opened to be used. The file may be
// on a file system whose server hangs, and so what the kernel does not know at once is not asked for.
dev_t DeviceOf(int fd) {
  struct statx status {};
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 ||
      syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
      !S_ISCHR(status.stx_mode))
    return 0;
  return makedev(status.stx_rdev_major, status.stx_rdev_minor);
}

}  // namespace

size_t FindDeviceFiles(std::span<int, kMostDeviceFiles> fds) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  dev_t files[kMostDeviceFiles];
  size_t count = 0;
  while (const dirent* entry = readdir(folder)) {
    if (count == fds.size()) break;
    const int fd = atoi(entry->d_name);
    const dev_t file = entry->d_name[0] == '.' ? 0 : DeviceOf(fd);
    const bool is_known = std::find(files, files + count, file) != files + count;
    if (file == 0 || is_known || IsOfEverybody(file)) continue;
    files[count] = file;
    fds[count++] = fd;
  }
  closedir(folder);
  return count;
}

}  // namespace xsched::preempt
