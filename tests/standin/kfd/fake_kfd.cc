#include "fake_kfd.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

#include "hal/hip/kfd/testing/kfd.h"

namespace {

constexpr int kGpus = 8;
constexpr uint32_t kFirstGpuId = 0x1000;
constexpr uint32_t kFirstBus = 5;
constexpr std::string_view kNodes = "/sys/class/kfd/kfd/topology/nodes/";

struct Driver {
  std::mutex mutex;
  std::condition_variable changed;
  xsched::hip::kfd::testing::Kfd kfd;

  Driver() {
    kfd.changed = [this] { changed.notify_all(); };
    // For programs in other processes than the test.
    if (const char* error = std::getenv("FAKE_KFD_FAIL_UPDATE")) {
      kfd.Fail(AMDKFD_IOC_UPDATE_QUEUE, std::atoi(error), INT32_MAX);
    }
  }
};

Driver& TheDriver() {
  static auto* const driver = new Driver;
  return *driver;
}

// A file of the topology: node 0 is the host. "": there is none of that name.
std::string TextOf(std::string_view path) {
  char name[32] = "";
  int node = -1;
  if (std::sscanf(path.data() + kNodes.size(), "%d/%31s", &node, name) != 2) return "";
  if (node < 0 || node > kGpus) return "";
  const uint32_t index = static_cast<uint32_t>(node - 1);
  if (std::string_view(name) == "gpu_id") return std::to_string(node == 0 ? 0 : kFirstGpuId + index) + "\n";
  if (std::string_view(name) != "properties") return "";
  return "simd_count 1\nlocation_id " + std::to_string((kFirstBus + index) << 8) + "\ndomain 0\n";
}

int FileWith(const std::string& text) {
  const int fd = memfd_create("sysfs", MFD_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) return -1;
  lseek(fd, 0, SEEK_SET);
  return fd;
}

int Open(const char* path, int flags, mode_t mode) {
  const std::string_view name = path == nullptr ? "" : path;
  if (name == "/dev/kfd") path = "/dev/null";
  if (name.starts_with(kNodes)) {
    if (const std::string text = TextOf(name); !text.empty()) return FileWith(text);
    errno = ENOENT;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(path, flags, mode);
}

__attribute__((visibility("default"))) int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Open(path, flags, mode);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) != AMDKFD_IOCTL_BASE || _IOC_SIZE(request) == 0) {
    return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  }
  std::lock_guard lock(TheDriver().mutex);
  return TheDriver().kfd.Ioctl(request, argument);
}

int fake_kfd_active(uint32_t id) {
  std::lock_guard lock(TheDriver().mutex);
  const auto& queues = TheDriver().kfd.queues();
  return queues.count(id) != 0 && TheDriver().kfd.active(id);
}

int fake_kfd_await_active(uint32_t id) {
  std::unique_lock lock(TheDriver().mutex);
  const auto& kfd = TheDriver().kfd;
  TheDriver().changed.wait(lock, [&] { return kfd.queues().count(id) == 0 || kfd.active(id); });
  return kfd.queues().count(id) != 0;
}

uint32_t fake_kfd_queues() {
  std::lock_guard lock(TheDriver().mutex);
  return static_cast<uint32_t>(TheDriver().kfd.queues().size());
}

uint32_t fake_kfd_active_queues() {
  std::lock_guard lock(TheDriver().mutex);
  const auto& queues = TheDriver().kfd.queues();
  return static_cast<uint32_t>(
      std::count_if(queues.begin(), queues.end(), [](const auto& entry) { return entry.second.active(); }));
}

void fake_kfd_fail_update(int nth, int error) {
  std::lock_guard lock(TheDriver().mutex);
  if (nth == 0) {
    TheDriver().kfd.FailNoMore();
  } else {
    TheDriver().kfd.Fail(AMDKFD_IOC_UPDATE_QUEUE, error, 1, nth - 1);
  }
}

size_t fake_kfd_take_record(char* text, size_t size) {
  std::lock_guard lock(TheDriver().mutex);
  std::string lines;
  for (const std::string& line : TheDriver().kfd.TakeRecord()) lines += line + "\n";
  return static_cast<size_t>(std::snprintf(text, size, "%s", lines.c_str()));
}
}
