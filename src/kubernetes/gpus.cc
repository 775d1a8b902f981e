#include "kubernetes/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <tuple>

#include "cli/exit_codes.h"
#include "cli/platform.h"
#include "kubernetes/shares.h"

namespace xsched::kubernetes {
namespace {

using cli::CommandError;
using cli::KernelDevice;

bool IsSame(const KernelDevice& a, const KernelDevice& b) {
  return std::tie(a.pci_address, a.cdi, a.variable, a.files) ==
         std::tie(b.pci_address, b.cdi, b.variable, b.files);
}

}  // namespace

GpuList::GpuList(std::vector<KernelDevice> named, std::string root, std::string dev)
    : root_(std::move(root)), dev_(std::move(dev)) {
  for (KernelDevice& device : named) {
    if (Find(device.id) != nullptr)
      throw CommandError(cli::kExitUsage, fmt::format("--device: there are two of the name {}", device.id));
    gpus_.push_back({.device = std::move(device), .is_named = true});
  }
}

bool GpuList::Update() {
  const std::vector<KernelDevice> listed = Listed();
  bool has_changed = false;
  for (const KernelDevice& device : listed) has_changed |= Take(device);
  for (Gpu& gpu : gpus_) {
    const bool works = Works(gpu, listed);
    has_changed |= works != gpu.works;
    gpu.works = works;
  }
  return has_changed;
}

const Gpu* GpuList::Find(const std::string& id) const {
  const auto found = std::ranges::find(gpus_, id, [](const Gpu& gpu) { return gpu.device.id; });
  return found == gpus_.end() ? nullptr : &*found;
}

// One of which a vendor's engine makes the files works without them. Of the others, containers need all.
std::vector<KernelDevice> GpuList::Listed() const {
  std::vector<KernelDevice> listed;
  for (const cli::Platform* platform : cli::Platforms()) {
    if (platform->list_devices == nullptr) continue;
    for (KernelDevice& device : platform->list_devices(root_)) {
      if (!ProblemOfGpuId(device.id).empty()) continue;
      if (!device.cdi.empty() || !device.variable.empty()) KeepFilesThatAreHere(device);
      listed.push_back(std::move(device));
    }
  }
  return listed;
}

bool GpuList::IsHere(const std::string& file) const {
  constexpr std::string_view kDev = "/dev";
  std::error_code ignored;
  return std::filesystem::exists(file.starts_with("/dev/") ? dev_ + file.substr(kDev.size()) : file, ignored);
}

// If none of them is here, this may be a container without the machine's /dev: then what the kernel lists
// counts.
bool GpuList::HasItsFiles(const KernelDevice& device) const {
  const auto count = std::ranges::count_if(device.files, [&](const auto& file) { return IsHere(file); });
  return count == 0 || static_cast<size_t>(count) == device.files.size();
}

void GpuList::KeepFilesThatAreHere(KernelDevice& device) const {
  if (HasItsFiles(device)) return;
  std::erase_if(device.files, [&](const std::string& file) { return !IsHere(file); });
}

// Returns true if it is new, or another one than before.
bool GpuList::Take(const KernelDevice& listed) {
  const auto known = std::ranges::find(gpus_, listed.id, [](const Gpu& gpu) { return gpu.device.id; });
  if (known != gpus_.end() && (known->is_named || IsSame(known->device, listed))) return false;
  Gpu& gpu = known == gpus_.end() ? gpus_.emplace_back() : *known;
  gpu.device = listed;
  gpu.numa_node = cli::NumaNodeOf(root_, listed.pci_address);
  return true;
}

bool GpuList::Works(const Gpu& gpu, const std::vector<KernelDevice>& listed) const {
  if (gpu.is_named)
    return std::ranges::all_of(gpu.device.files, [&](const std::string& file) { return IsHere(file); });
  return std::ranges::count(listed, gpu.device.id, &KernelDevice::id) != 0 &&
         cli::AnswersOnBus(root_, gpu.device.pci_address) && HasItsFiles(gpu.device);
}

KernelDevice ReadNamedDevice(const std::string& text) {
  std::istringstream parts(text);
  KernelDevice device;
  std::getline(parts, device.id, ',');
  const std::string problem = ProblemOfGpuId(device.id);
  if (!problem.empty()) throw CommandError(cli::kExitUsage, "--device: " + problem);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string value = part.substr(std::min(part.find('=') + 1, part.size()));
    if (part.starts_with("cdi=") && value.find('=') != std::string::npos) {
      device.cdi = value;
    } else if (part.starts_with("file=/")) {
      device.files.push_back(value);
    } else {
      throw CommandError(
          cli::kExitUsage,
          fmt::format("--device {}: \"{}\" is neither cdi=VENDOR/KIND=NAME nor file=/PATH", device.id, part));
    }
  }
  return device;
}

}  // namespace xsched::kubernetes
