#include "server/device_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace xsched::server {
namespace {

// Numbers of devices are PCI addresses, except those with this bit.
constexpr XDeviceId kNoPciAddress = 0x80000000u;

// NVIDIA's driver has a file for each GPU, and above that one for all of them. It does not say in /sys of
// which GPU a file is.
constexpr unsigned kNvidiaMajor = 195;
constexpr unsigned kMostNvidiaGpus = 247;
constexpr const char* kNvidiaVendor = "0x10de";

// AMD's driver makes further files where a GPU is divided. They have no PCI address in /sys; KFD lists them.
constexpr unsigned kDrmMajor = 226;

std::string AddressOf(XDevice device) {
  const auto id = static_cast<XDeviceId>(device);
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id >> 16, id >> 8 & 0xff, id >> 3 & 0x1f, id & 7);
}

std::string FirstWord(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// What `…/information` says behind "Device Minor:"; nullopt: nothing.
std::optional<unsigned> NvidiaMinor(const std::string& path) {
  constexpr std::string_view kHeading = "Device Minor:";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kHeading))
      return static_cast<unsigned>(strtoul(line.c_str() + kHeading.size(), nullptr, 10));
  }
  return std::nullopt;
}

bool HasPciAddress(const std::filesystem::path& path) {
  return std::any_of(path.begin(), path.end(),
                     [](const auto& part) { return ReadPciAddress(part.c_str()).has_value(); });
}

// What KFD says of a GPU, or of a part of one.
struct KfdNode {
  uint64_t domain = 0;
  uint64_t location = 0;  // bus, device and function
  uint64_t render_minor = 0;
};

KfdNode ReadKfdNode(const std::filesystem::path& properties) {
  KfdNode node;
  std::ifstream file(properties);
  for (std::string name, value; file >> name >> value;) {
    const uint64_t number = strtoull(value.c_str(), nullptr, 10);
    if (name == "domain") node.domain = number;
    if (name == "location_id") node.location = number;
    if (name == "drm_render_minor") node.render_minor = number;
  }
  return node;
}

// In the place of the function, some kernels have the number of the part.
bool IsAt(const KfdNode& node, const std::string& address) {
  return address.starts_with(fmt::format("{:04x}:{:02x}:{:02x}.", node.domain, node.location >> 8 & 0xff,
                                         node.location >> 3 & 0x1f));
}

}  // namespace

std::optional<dev_t> DeviceAccess::FileOf(int fd) {
  struct stat status {};
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode))
    return std::nullopt;
  return status.st_rdev;
}

bool DeviceAccess::MayUse(const std::vector<dev_t>& files, XDevice device) const {
  const std::string address = AddressOf(device);
  return !needed_ || !NeedsFile(device, address) ||
         std::any_of(files.begin(), files.end(), [&](dev_t file) { return IsOf(file, address); });
}

// A device that this machine does not have is nobody else's.
bool DeviceAccess::NeedsFile(XDevice device, const std::string& address) const {
  const XDeviceType type = TypeOfDevice(device);
  if (type == kDeviceTypeUnknown || type == kDeviceTypeCPU || (device & kNoPciAddress) != 0) return false;
  std::error_code ignored;
  return std::filesystem::exists(fmt::format("{}/bus/pci/devices/{}", folders_.sys, address), ignored);
}

bool DeviceAccess::IsOf(dev_t file, const std::string& address) const {
  std::error_code error;
  const std::string link = fmt::format("{}/dev/char/{}:{}", folders_.sys, major(file), minor(file));
  const std::filesystem::path device = std::filesystem::canonical(link, error);
  if (!error && std::find(device.begin(), device.end(), address) != device.end()) return true;
  if (!error && major(file) == kDrmMajor && !HasPciAddress(device)) return IsOfPart(minor(file), address);
  if (major(file) != kNvidiaMajor || minor(file) > kMostNvidiaGpus) return false;
  const std::string information = fmt::format("{}/{}/information", folders_.nvidia, address);
  if (const std::optional<unsigned> gpu = NvidiaMinor(information)) return *gpu == minor(file);
  // Where the driver's folder cannot be seen, one GPU's file shows that the process can use GPUs of NVIDIA.
  return !std::filesystem::exists(folders_.nvidia, error) &&
         FirstWord(fmt::format("{}/bus/pci/devices/{}/vendor", folders_.sys, address)) == kNvidiaVendor;
}

bool DeviceAccess::IsOfPart(unsigned render_minor, const std::string& address) const {
  std::error_code error;
  for (const auto& folder :
       std::filesystem::directory_iterator(folders_.sys + "/class/kfd/kfd/topology/nodes", error)) {
    const KfdNode node = ReadKfdNode(folder.path() / "properties");
    if (node.render_minor != 0 && node.render_minor == render_minor && IsAt(node, address)) return true;
  }
  return false;
}

}  // namespace xsched::server
