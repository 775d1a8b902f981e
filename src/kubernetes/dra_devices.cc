#include "kubernetes/dra_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace xsched::kubernetes {
namespace {

using nlohmann::json;

// Of one ResourceSlice.
constexpr size_t kMostDevices = 128;
// Of a DNS label, less the longest "-31-of-32".
constexpr size_t kLongestLabel = 63 - 9;

// The id in small letters, with a hyphen for what is neither letter nor digit.
std::string LabelOf(const std::string& id) {
  std::string label;
  for (const char c : id) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    label += is_capital ? static_cast<char>(c - 'A' + 'a') : is_kept ? c : '-';
  }
  return label;
}

// -1: it is no number, as we write it.
int ReadNumber(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::to_string(number) == text ? number : -1;
}

json PublishedDevice(const DraDevice& device, const Division& division) {
  json published = {{"name", device.name}, {"attributes", {{kGpuAttribute, {{"string", device.gpu}}}}}};
  if (device.numa_node >= 0) published["attributes"]["numaNode"] = {{"int", device.numa_node}};
  json& capacity = published["capacity"][kShareCapacity];
  capacity["value"] = std::to_string(division.by_capacity ? 100 : PercentOfSlot(division.slots));
  if (division.by_capacity) {
    published["allowMultipleAllocations"] = true;
    // A request that names no share has the whole GPU.
    capacity["requestPolicy"] = {{"default", "100"}, {"validRange", {{"min", "1"}, {"step", "1"}}}};
  }
  return published;
}

}  // namespace

std::vector<DraDevice> DraDevicesOf(const std::vector<Gpu>& gpus, const Division& division) {
  std::vector<DraDevice> devices;
  for (const Gpu& gpu : gpus) {
    if (!gpu.works || !ProblemOfDraName(gpus, gpu).empty()) continue;
    const std::string label = LabelOf(gpu.device.id);
    if (division.by_capacity) devices.push_back({label, gpu.device.id, gpu.numa_node});
    for (int slot = 0; slot < division.slots && !division.by_capacity; ++slot) {
      devices.push_back(
          {fmt::format("{}-{}-of-{}", label, slot, division.slots), gpu.device.id, gpu.numa_node});
    }
  }
  return devices;
}

std::string ProblemOfDraName(const std::vector<Gpu>& gpus, const Gpu& gpu) {
  const std::string& id = gpu.device.id;
  const std::string label = LabelOf(id);
  if (label.size() > kLongestLabel) return fmt::format("{} has more than {} characters", id, kLongestLabel);
  if (label.front() == '-' || label.back() == '-')
    return fmt::format("{} does not begin and end with a letter or a digit", id);
  // The first of two that have the same name has it.
  const auto first =
      std::ranges::find(gpus, label, [](const Gpu& other) { return LabelOf(other.device.id); });
  if (first != gpus.end() && first->device.id != id)
    return fmt::format("{} and {} would have the same name, {}", first->device.id, id, label);
  return "";
}

std::optional<DraSlot> SlotOf(const std::string& device) {
  constexpr std::string_view kOf = "-of-";
  const std::string_view name = device;
  const size_t of = name.rfind(kOf);
  const size_t number = name.substr(0, of).rfind('-');
  if (of == std::string_view::npos || number == std::string_view::npos || number == 0) return std::nullopt;
  const int slots = ReadNumber(name.substr(of + kOf.size()));
  const int slot = ReadNumber(name.substr(number + 1, of - number - 1));
  if (slots < 1 || slots > kMostSlots || slot < 0 || slot >= slots) return std::nullopt;
  return DraSlot{device.substr(0, number), slots};
}

const Gpu* GpuOfDraDevice(const std::vector<Gpu>& gpus, const std::string& device) {
  const std::optional<DraSlot> slot = SlotOf(device);
  const Gpu* of_slot = nullptr;
  for (const Gpu& gpu : gpus) {
    if (!ProblemOfDraName(gpus, gpu).empty()) continue;
    const std::string label = LabelOf(gpu.device.id);
    if (device == label) return &gpu;
    if (slot && slot->gpu == label) of_slot = &gpu;
  }
  return of_slot;
}

std::vector<json> PublishedDevices(const std::vector<DraDevice>& devices, const Division& division) {
  std::vector<json> slices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i % kMostDevices == 0) slices.push_back(json::array());
    slices.back().push_back(PublishedDevice(devices[i], division));
  }
  return slices;
}

}  // namespace xsched::kubernetes
