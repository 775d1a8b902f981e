#include "preempt/scheduling/device_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <optional>

#include "base/device_file.h"

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
    if (entry->d_name[0] == '.') continue;
    const std::optional<dev_t> file = DeviceFileOf(fd);
    if (!file || IsOfEverybody(*file) || std::find(files, files + count, *file) != files + count) continue;
    files[count] = *file;
    fds[count++] = fd;
  }
  closedir(folder);
  return count;
}

}  // namespace xsched::preempt
