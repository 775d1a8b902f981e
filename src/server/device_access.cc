#include "server/device_access.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/pci_address.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

// Numbers of devices are PCI addresses, except those with this bit.
constexpr XDeviceId kNoPciAddress = 0x80000000u;

// NVIDIA's driver has a file for each GPU, and above that one for all of them. It does not say in /sys of
// which GPU a file is.
constexpr unsigned kNvidiaMajor = 195;
constexpr unsigned kMostNvidiaGpus = 247;
constexpr const char* kNvidiaVendor = "0x10de";

// Where a GPU is divided, AMD's driver makes a file for each part. In /sys, only the file of the first part
// has a PCI address; KFD lists all of them. The file of a part gives access to this part only.
constexpr unsigned kDrmMajor = 226;
constexpr const char* kAmdVendor = "0x1002";

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

// A file of NVIDIA's driver that is of one GPU.
bool IsOfNvidiaGpu(dev_t file) { return major(file) == kNvidiaMajor && minor(file) <= kMostNvidiaGpus; }

// `of_file`: an address, or one without the function.
bool IsAt(const std::string& of_file, const std::string& address) {
  return of_file.ends_with('.') ? address.starts_with(of_file) : address == of_file;
}

void AddOnce(std::string address, std::vector<std::string>& addresses) {
  if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
    addresses.push_back(std::move(address));
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

// Of all functions: in the place of the function, some kernels have the number of the part.
std::string AddressOf(const KfdNode& node) {
  return fmt::format("{:04x}:{:02x}:{:02x}.", node.domain, node.location >> 8 & 0xff,
                     node.location >> 3 & 0x1f);
}

// The whole GPU, where the kernel does not say which part it is, or it is the first one.
XDevice DeviceOf(const KfdNode& node) {
  const auto domain = static_cast<uint32_t>(node.domain);
  const auto location = static_cast<uint32_t>(node.location);
  const XDevice whole =
      MakeDevice(kDeviceTypeGPU, PciAddress(domain, location >> 8 & 0xff, location >> 3 & 0x1f, 0));
  return PartOfDevice(whole, location & 0x7);
}

}  // namespace

std::string DeviceAccess::LookUp(std::string path) {
  ++look_ups_;
  return path;
}

bool DeviceAccess::Show(dev_t file, ShownDevices& shown) {
  if (shown.files.size() >= kMaxDeviceFiles ||
      std::find(shown.files.begin(), shown.files.end(), file) != shown.files.end())
    return false;
  shown.files.push_back(file);
  if (!needed_) return true;
  std::error_code error;
  const std::filesystem::path device = std::filesystem::canonical(
      LookUp(fmt::format("{}/dev/char/{}:{}", folders_.sys, major(file), minor(file))), error);
  if (error) return true;
  bool has_address = false;
  for (const std::filesystem::path& part : device) {
    if (!ReadPciAddress(part.c_str())) continue;
    has_address = true;
    AddOnce(part.string(), shown.addresses);
  }
  if (!has_address && major(file) == kDrmMajor) AddPart(minor(file), shown);
  return true;
}

// Older runtimes do not say on which part a queue is, so the file of a part also shows the whole GPU.
void DeviceAccess::AddPart(unsigned render_minor, ShownDevices& shown) {
  if (render_minor == 0) return;
  std::error_code error;
  const std::string nodes = LookUp(folders_.sys + "/class/kfd/kfd/topology/nodes");
  for (const auto& folder : std::filesystem::directory_iterator(nodes, error)) {
    const KfdNode node = ReadKfdNode(LookUp(folder.path() / "properties"));
    if (node.render_minor != render_minor) continue;
    AddOnce(AddressOf(node), shown.addresses);
    shown.parts.push_back(DeviceOf(node));
  }
}

bool DeviceAccess::MayUse(const ShownDevices& shown, XDevice device) {
  const std::string address = TextOfPciAddress(device).text;
  if (!needed_ || !NeedsFile(device, address)) return true;
  if (NeedsPartsFile(device, address))
    return std::find(shown.parts.begin(), shown.parts.end(), device) != shown.parts.end();
  return std::any_of(shown.addresses.begin(), shown.addresses.end(),
                     [&](const std::string& of_file) { return IsAt(of_file, address); }) ||
         IsNvidias(shown.files, address);
}

// A device that this machine does not have is nobody else's.
bool DeviceAccess::NeedsFile(XDevice device, const std::string& address) {
  const XDeviceType type = TypeOfDevice(device);
  if (type == kDeviceTypeUnknown || type == kDeviceTypeCPU || (device & kNoPciAddress) != 0) return false;
  std::error_code ignored;
  return std::filesystem::exists(LookUp(fmt::format("{}/bus/pci/devices/{}", folders_.sys, address)),
                                 ignored);
}

// The first part has the files of the whole GPU.
bool DeviceAccess::NeedsPartsFile(XDevice device, const std::string& address) {
  return device != WholeDevice(device) && VendorAt(address) == kAmdVendor;
}

std::string DeviceAccess::VendorAt(const std::string& address) {
  return FirstWord(LookUp(fmt::format("{}/bus/pci/devices/{}/vendor", folders_.sys, address)));
}

bool DeviceAccess::IsNvidias(const std::vector<dev_t>& files, const std::string& address) {
  if (std::none_of(files.begin(), files.end(), IsOfNvidiaGpu)) return false;
  const std::string information = fmt::format("{}/{}/information", folders_.nvidia, address);
  if (const std::optional<unsigned> gpu = NvidiaMinor(LookUp(information))) {
    const dev_t file = makedev(kNvidiaMajor, *gpu);
    return IsOfNvidiaGpu(file) && std::find(files.begin(), files.end(), file) != files.end();
  }
  // Where the driver's folder cannot be seen, one GPU's file shows that the process can use GPUs of NVIDIA.
  std::error_code error;
  return !std::filesystem::exists(LookUp(folders_.nvidia), error) && VendorAt(address) == kNvidiaVendor;
}

}  // namespace xsched::server
