#include "kubernetes/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/platform.h"
#include "kubernetes/shares.h"

namespace xsched::kubernetes {
namespace {

using cli::CommandError;
using cli::KernelDevice;

std::vector<KernelDevice> ListedByKernel(const std::string& root) {
  std::vector<KernelDevice> listed;
  for (const cli::Platform* platform : cli::Platforms()) {
    if (platform->list_devices == nullptr) continue;
    for (KernelDevice& device : platform->list_devices(root)) {
      if (ProblemOfGpuId(device.id).empty()) listed.push_back(std::move(device));
    }
  }
  return listed;
}

}  // namespace

GpuList::GpuList(std::vector<KernelDevice> named, std::string root) : root_(std::move(root)) {
  for (KernelDevice& device : named) {
    if (Find(device.id) != nullptr)
      throw CommandError(cli::kExitUsage, fmt::format("--device: there are two of the name {}", device.id));
    gpus_.push_back({.device = std::move(device), .is_named = true});
  }
}

bool GpuList::Update() {
  const std::vector<KernelDevice> listed = ListedByKernel(root_);
  bool has_changed = false;
  for (const KernelDevice& device : listed) {
    if (Find(device.id) != nullptr) continue;
    gpus_.push_back({.device = device, .numa_node = cli::NumaNodeOf(root_, device.pci_address)});
    has_changed = true;
  }
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

bool GpuList::Works(const Gpu& gpu, const std::vector<KernelDevice>& listed) const {
  if (!gpu.is_named) {
    return std::ranges::count(listed, gpu.device.id, &KernelDevice::id) != 0 &&
           cli::AnswersOnBus(root_, gpu.device.pci_address);
  }
  return std::ranges::all_of(gpu.device.files, [](const std::string& file) {
    std::error_code ignored;
    return std::filesystem::exists(file, ignored);
  });
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
