// The GPUs that AMD's kernel driver lists.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include "platforms/hip/doctor.h"

namespace xsched::cli::hip {
namespace {

namespace fs = std::filesystem;

uint64_t NumberIn(const std::string& path, const char* name) {
  const std::string text = FieldIn(path, name);
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string PciAddressIn(const std::string& properties) {
  const uint64_t location = NumberIn(properties, "location_id");  // bus, device and function
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", NumberIn(properties, "domain"), location >> 8 & 0xff,
                     location >> 3 & 0x1f, location & 7);
}

}  // namespace

std::vector<KernelDevice> ListDevices(const std::string& root) {
  std::vector<KernelDevice> devices;
  std::error_code error;
  for (const fs::directory_entry& node :
       fs::directory_iterator(root + "/sys/class/kfd/kfd/topology/nodes", error)) {
    const std::string properties = node.path() / "properties";
    if (NumberIn(properties, "simd_count") == 0) continue;  // a processor
    const std::string address = PciAddressIn(properties);
    const uint64_t unique = NumberIn(properties, "unique_id");
    devices.push_back(
        {.id = unique != 0 ? fmt::format("GPU-{:016x}", unique) : address,
         .pci_address = address,
         .cdi = "",
         .variable = "",
         .files = {"/dev/kfd", fmt::format("/dev/dri/renderD{}", NumberIn(properties, "drm_render_minor"))}});
  }
  std::ranges::sort(devices, {}, &KernelDevice::pci_address);
  return devices;
}

}  // namespace xsched::cli::hip
