#include "preempt/scheduling/device_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

}  // namespace

size_t FindDeviceFiles(std::span<int, kMostDeviceFiles> fds) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  dev_t files[kMostDeviceFiles];
  size_t count = 0;
  while (const dirent* entry = readdir(folder)) {
    if (count == fds.size()) break;
    const int fd = atoi(entry->d_name);
    struct stat status {};
    if (entry->d_name[0] == '.' || fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode)) continue;
    const bool is_known = std::find(files, files + count, status.st_rdev) != files + count;
    if (is_known || IsOfEverybody(status.st_rdev) || (fcntl(fd, F_GETFL) & O_PATH) != 0) continue;
    files[count] = status.st_rdev;
    fds[count++] = fd;
  }
  closedir(folder);
  return count;
}

}  // namespace xsched::preempt
