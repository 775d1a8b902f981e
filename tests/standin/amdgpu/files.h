// The files of the stand-in's machine: which paths are its own, and what a descriptor is open for.
//
// A device is a file in memory, so that mmap(2) needs no care: what the driver would map at an offset is
// there.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

namespace standin_amdgpu {

enum class FileKind { kForeign, kKfd, kRender };

struct DeviceFile {
  FileKind kind = FileKind::kForeign;
  uint32_t index = 0;  // kRender: of which GPU
};

// Where a path of the machine's /sys really is. Empty: the path is not the machine's.
std::string RealPath(const char* path);
// A device's path opens a descriptor (or -1 with errno). No value: it is not a device's path.
std::optional<int> OpenDevice(const char* path, int flags);
// What `fd` is open for, also if it is a duplicate.
DeviceFile Identify(int fd);
// As fstat(2) of the device itself. False: it is not open for a device.
bool DescribeDevice(int fd, uint64_t* rdev);

// The file behind a device, for the stand-in's own mappings.
int KfdFile();
int RenderFile(uint32_t index);

uint32_t CountGpus();
// What the machine's files say of a GPU. 0: nothing.
uint64_t PropertyOf(uint32_t gpu, const char* name);

}  // namespace standin_amdgpu
