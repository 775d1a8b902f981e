// The GPUs that AMD's kernel driver lists.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <tuple>

#include "base/pci_device.h"
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

// Each part of a divided GPU (CPX, DPX) is listed. All have the PCI address of the GPU, and may have its id.
struct Place {
  std::string address;
  uint64_t part;  // 0: the first one, or the whole GPU
};

// Kernels have the part's number in the place of the function, or above the address.
Place PlaceIn(const std::string& root, const std::string& properties) {
  const uint64_t location = NumberIn(properties, "location_id");  // bus, device and function
  const auto function = static_cast<uint32_t>(location & 7);
  const std::string slot = fmt::format("{:04x}:{:02x}:{:02x}.", NumberIn(properties, "domain"),
                                       location >> 8 & 0xff, location >> 3 & 0x1f);
  const auto is_on_bus = [&](uint32_t of) {
    std::error_code ignored;
    return fs::exists(fmt::format("{}/sys/bus/pci/devices/{}{:x}", root, slot, of), ignored);
  };
  if (IsPartOfFunction0(function, is_on_bus)) return {slot + "0", function};
  return {fmt::format("{}{:x}", slot, function), location >> 28 & 0xf};
}

std::string IdOf(uint64_t unique, const Place& place) {
  const std::string gpu = unique != 0 ? fmt::format("GPU-{:016x}", unique) : place.address;
  return place.part == 0 ? gpu : fmt::format("{}.{}", gpu, place.part);
}

}  // namespace

std::vector<KernelDevice> ListDevices(const std::string& root) {
  std::vector<KernelDevice> devices;
  std::error_code error;
  for (const fs::directory_entry& node :
       fs::directory_iterator(root + "/sys/class/kfd/kfd/topology/nodes", error)) {
    const std::string properties = node.path() / "properties";
    if (NumberIn(properties, "simd_count") == 0) continue;  // a processor
    const Place place = PlaceIn(root, properties);
    devices.push_back(
        {.id = IdOf(NumberIn(properties, "unique_id"), place),
         .pci_address = place.address,
         .cdi = "",
         .variable = "",
         .files = {"/dev/kfd", fmt::format("/dev/dri/renderD{}", NumberIn(properties, "drm_render_minor"))}});
  }
  std::ranges::sort(devices, {},
                    [](const KernelDevice& device) { return std::tie(device.pci_address, device.id); });
  return devices;
}

}  // namespace xsched::cli::hip
