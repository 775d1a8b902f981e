#include "hal/hip/kfd/sysfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pci_device.h"

namespace xsched::hip::kfd {
namespace {

constexpr int kMaxNodes = 256;

// A node of the topology. CPUs are nodes as well, with GPU id 0.
struct Node {
  GpuId gpu = 0;
  XDevice device = 0;
};

// Reads the beginning of the file. "": it may not be read. False: it does not exist.
template <size_t kSize>
bool ReadText(const char* path, char (&text)[kSize]) {
  UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  size_t used = 0;
  for (ssize_t count = 0; (count = read(file.get(), text + used, kSize - 1 - used)) > 0;) {
    used += static_cast<size_t>(count);
  }
  text[used] = '\0';
  return true;
}

// The number behind `name` at the beginning of a line; 0 also if there is none.
unsigned long ReadProperty(const char* text, const char* name) {
  const size_t length = strlen(name);
  for (const char* line = text; line != nullptr; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, name, length) == 0 && line[length] == ' ') return strtoul(line + length, nullptr, 10);
  }
  return 0;
}

// False: there is no such node.
bool ReadNode(const char* sysfs, int index, Node* node) {
  char path[512];
  char text[8192];
  snprintf(path, sizeof path, "%s/class/kfd/kfd/topology/nodes/%d/gpu_id", sysfs, index);
  if (!ReadText(path, text)) return false;
  // A container may not read the id of a GPU that it was not given: then it is 0.
  *node = {.gpu = static_cast<GpuId>(strtoul(text, nullptr, 10))};
  snprintf(path, sizeof path, "%s/class/kfd/kfd/topology/nodes/%d/properties", sysfs, index);
  if (node->gpu == 0 || !ReadText(path, text)) return true;
  // Bus, device and function; above them, the part of the GPU.
  const unsigned long location = ReadProperty(text, "location_id");
  const auto domain = static_cast<uint32_t>(ReadProperty(text, "domain"));
  node->device = WholeDevice(
      PciDeviceAt(sysfs, PciAddress(domain, location >> 8 & 0xff, location >> 3 & 0x1f, location & 0x7)));
  return true;
}

// The address of the first GPU for which `wanted` is true.
template <typename Wanted>
Node FindNode(const char* sysfs, Wanted&& wanted) {
  Node node;
  for (int i = 0; i < kMaxNodes && ReadNode(sysfs, i, &node); ++i) {
    if (node.gpu != 0 && wanted(node)) return node;
  }
  return {};
}

}  // namespace

XDevice DeviceOf(const char* sysfs, GpuId gpu) {
  return FindNode(sysfs, [gpu](const Node& node) { return node.gpu == gpu; }).device;
}

bool HasDevice(const char* sysfs, XDevice device) {
  return FindNode(sysfs, [whole = WholeDevice(device)](const Node& node) {
           return node.device == whole;
         }).gpu != 0;
}

bool SavesWaves(const char* sysfs) {
  char path[512];
  char text[16];
  snprintf(path, sizeof path, "%s/module/amdgpu/parameters/cwsr_enable", sysfs);
  return !ReadText(path, text) || text[0] != '0';
}

}  // namespace xsched::hip::kfd
