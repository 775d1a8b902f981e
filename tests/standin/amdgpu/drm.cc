#include "drm.h"

#include <errno.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "gpus.h"

namespace standin_amdgpu {
namespace {

// Numbers and layouts of drm/drm.h and drm/amdgpu_drm.h.
constexpr unsigned kVersion = 0x00;
constexpr unsigned kGetClient = 0x05;
constexpr unsigned kAmdgpuInfo = 0x45;

struct Version {
  int major, minor, patch;
  size_t name_length;
  char* name;
  size_t date_length;
  char* date;
  size_t text_length;
  char* text;
};
struct Client {
  int index;
  int authenticated;
  unsigned long pid, uid, magic, count;
};
struct Info {
  uint64_t answer;
  uint32_t size;
  uint32_t query;
  uint32_t details[4];
};
constexpr uint32_t kAccelerationWorks = 0x00;
constexpr uint32_t kReadRegisters = 0x15;
constexpr uint32_t kDeviceInfo = 0x16;

struct DeviceInfo {  // as far as it is needed; the driver's is longer
  uint32_t device;
  uint32_t chip_revision, external_revision, pci_revision;
  uint32_t family;
  uint32_t shader_engines, arrays_per_engine;
  uint32_t counter_khz;
  uint64_t engine_clock, memory_clock;
  uint32_t compute_units, always_on;
  uint32_t bitmap[4][4];
  uint32_t backends_mask, backends, contexts, pcie;
  uint64_t flags;
  uint64_t address_from, address_to;
  uint32_t address_alignment, fragment_size, page_size, unused;
};
static_assert(offsetof(DeviceInfo, address_from) == 144);

constexpr DeviceInfo kMi308x = {
    .device = 0x74A2,
    .family = 141,  // AMDGPU_FAMILY_AI
    .shader_engines = 16,
    .arrays_per_engine = 1,
    .counter_khz = 100'000,
    .engine_clock = 2'100'000,
    .memory_clock = 1'300'000,
    .compute_units = 80,
    .address_from = 0x200000,
    .address_to = uint64_t{1} << 47,
    .address_alignment = 4096,
    .fragment_size = 2 << 20,
    .page_size = 4096,
};

int Write(const Info& info, const void* value, size_t size) {
  std::memset(reinterpret_cast<void*>(info.answer), 0, info.size);
  std::memcpy(reinterpret_cast<void*>(info.answer), value, std::min<size_t>(size, info.size));
  return 0;
}

int Answer(const Info& info) {
  constexpr uint32_t kYes = 1, kNone = 0;
  switch (info.query) {
    case kAccelerationWorks:
      return Write(info, &kYes, sizeof kYes);
    case kReadRegisters:
      return Write(info, &kNone, sizeof kNone);
    case kDeviceInfo:
      return Write(info, &kMi308x, sizeof kMi308x);
    default:
      return Write(info, &kNone, sizeof kNone);
  }
}

void Copy(std::string_view text, char* to, size_t* length) {
  if (to != nullptr) std::memcpy(to, text.data(), std::min(text.size(), *length));
  *length = text.size();
}

int Tell(Version& version) {
  version.major = 3;  // amdgpu's
  version.minor = 61;
  version.patch = 0;
  Copy("amdgpu", version.name, &version.name_length);
  Copy("20150101", version.date, &version.date_length);
  Copy("AMD GPU", version.text, &version.text_length);
  return 0;
}

}  // namespace

int PerformDrm(uint32_t, unsigned long request, void* argument) {
  switch (_IOC_NR(request)) {
    case kVersion:
      return Tell(*static_cast<Version*>(argument));
    case kGetClient:
      static_cast<Client*>(argument)->authenticated = 1;
      return 0;
    case kAmdgpuInfo:
      return Answer(*static_cast<const Info*>(argument));
    default:
      return EINVAL;
  }
}

}  // namespace standin_amdgpu
