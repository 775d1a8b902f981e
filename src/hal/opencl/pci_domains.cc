#include "hal/opencl/pci_domains.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace xsched::opencl {
namespace {

// The number in a file of the device. 0: there is none.
unsigned long ReadNumber(const char* devices, const char* address, const char* name) {
  char path[640];
  snprintf(path, sizeof path, "%s/%s/%s", devices, address, name);
  UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[16]{};
  return file && read(file.get(), text, sizeof text - 1) > 0 ? strtoul(text, nullptr, 16) : 0;
}

// Of the vendor's devices, switches and audio devices are no GPUs.
bool IsGpuOf(uint32_t vendor, const char* devices, const char* address) {
  constexpr unsigned long kDisplay = 0x03;
  constexpr unsigned long kAccelerator = 0x12;
  if (ReadNumber(devices, address, "vendor") != vendor) return false;
  const unsigned long base_class = ReadNumber(devices, address, "class") >> 16;
  return base_class == kDisplay || base_class == kAccelerator;
}

}  // namespace

Array<uint32_t> PciDomains(const char* sysfs, uint32_t vendor, uint32_t bus, uint32_t device,
                           uint32_t function) {
  Array<uint32_t> domains;
  char path[256];
  snprintf(path, sizeof path, "%s/bus/pci/devices", sysfs);
  DIR* folder = opendir(path);
  if (folder == nullptr) return domains;
  while (const dirent* entry = readdir(folder)) {
    uint32_t found[4];
    if (sscanf(entry->d_name, "%x:%x:%x.%x", &found[0], &found[1], &found[2], &found[3]) == 4 &&
        found[1] == bus && found[2] == device && found[3] == function &&
        IsGpuOf(vendor, path, entry->d_name) && !domains.Push(found[0]))
      break;
  }
  closedir(folder);
  std::sort(domains.data(), domains.data() + domains.size());
  return domains;
}

}  // namespace xsched::opencl
