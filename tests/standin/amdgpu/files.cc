#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "gpus.h"

namespace standin_amdgpu {
namespace {

constexpr off_t kSpace = off_t{1} << 46;  // sparse
constexpr unsigned kDrmMajor = 226;
constexpr std::string_view kOwnFolders[] = {"/sys/devices/virtual/kfd/", "/sys/class/kfd/",
                                            "/sys/module/amdgpu/", "/sys/dev/char/226:"};
constexpr std::string_view kRenderNodes = "/dev/dri/renderD";

struct Backing {
  int fd = -1;
  uint64_t device = 0;
  uint64_t inode = 0;

  bool Create(const char* name) {
    fd = memfd_create(name, MFD_CLOEXEC);
    struct stat info {};
    if (fd < 0 || ftruncate(fd, kSpace) != 0 || syscall(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) != 0)
      return false;
    device = info.st_dev;
    inode = info.st_ino;
    return true;
  }
};

struct Backings {
  Backing kfd;
  Backing render[kMaxGpus];

  Backings() {
    if (!kfd.Create("kfd")) std::abort();
    for (Backing& backing : render) {
      if (!backing.Create("renderD")) std::abort();
    }
  }
};

const Backings& TheBackings() {
  static auto* const backings = new Backings;
  return *backings;
}

const char* Machine() {
  const char* folder = std::getenv("STANDIN_AMDGPU_MACHINE");
  return folder != nullptr ? folder : STANDIN_AMDGPU_DEFAULT_MACHINE;
}

std::string NodeOf(uint32_t gpu) {
  return Machine() + std::string("/sys/class/kfd/kfd/topology/nodes/") + std::to_string(gpu + 1);
}

// Another open file of the same memory, as if the device had been opened once more.
int Reopen(const Backing& backing, int flags) {
  const std::string path = "/proc/self/fd/" + std::to_string(backing.fd);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), (flags & O_CLOEXEC) | O_RDWR));
}

}  // namespace

std::string RealPath(const char* path) {
  const std::string_view name = path == nullptr ? "" : path;
  for (std::string_view folder : kOwnFolders) {
    if (name.starts_with(folder)) return Machine() + std::string(name);
  }
  return "";
}

std::optional<int> OpenDevice(const char* path, int flags) {
  const std::string_view name = path == nullptr ? "" : path;
  if (name == "/dev/kfd") return Reopen(TheBackings().kfd, flags);
  if (!name.starts_with(kRenderNodes)) return std::nullopt;
  const uint32_t minor = static_cast<uint32_t>(std::atoi(path + kRenderNodes.size()));
  if (minor < kFirstRenderMinor || minor - kFirstRenderMinor >= CountGpus()) {
    errno = ENOENT;
    return -1;
  }
  return Reopen(TheBackings().render[minor - kFirstRenderMinor], flags);
}

DeviceFile Identify(int fd) {
  struct stat info {};
  if (syscall(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) != 0) return {};
  const auto is = [&info](const Backing& backing) {
    return backing.device == info.st_dev && backing.inode == info.st_ino;
  };
  const Backings& backings = TheBackings();
  if (is(backings.kfd)) return {.kind = FileKind::kKfd};
  for (uint32_t i = 0; i < kMaxGpus; ++i) {
    if (is(backings.render[i])) return {.kind = FileKind::kRender, .index = i};
  }
  return {};
}

bool DescribeDevice(int fd, uint64_t* rdev) {
  const DeviceFile file = Identify(fd);
  if (file.kind != FileKind::kRender) return false;
  *rdev = makedev(kDrmMajor, kFirstRenderMinor + file.index);
  return true;
}

int KfdFile() { return TheBackings().kfd.fd; }
int RenderFile(uint32_t index) { return TheBackings().render[index].fd; }

uint32_t CountGpus() {
  static const uint32_t count = [] {
    uint32_t found = 0;
    for (; found < kMaxGpus; ++found) {
      if (syscall(SYS_faccessat, AT_FDCWD, NodeOf(found).c_str(), F_OK) != 0) break;
    }
    return found;
  }();
  return count;
}

uint64_t PropertyOf(uint32_t gpu, const char* name) {
  std::ifstream file(NodeOf(gpu) + "/properties");
  uint64_t value = 0;
  for (std::string found; file >> found >> value;) {
    if (found == name) return value;
  }
  return 0;
}

}  // namespace standin_amdgpu
