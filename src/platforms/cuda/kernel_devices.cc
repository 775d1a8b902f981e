// The GPUs that NVIDIA's kernel driver lists.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "platforms/cuda/doctor.h"

namespace xsched::cli::cuda {

namespace fs = std::filesystem;

std::vector<KernelDevice> ListDevices(const std::string& root) {
  std::vector<KernelDevice> devices;
  std::error_code error;
  for (const fs::directory_entry& gpu : fs::directory_iterator(root + "/proc/driver/nvidia/gpus", error)) {
    const std::string information = gpu.path() / "information";
    const std::string uuid = FieldIn(information, "GPU UUID");
    // Before the GPU is used for the first time, its driver prints question marks.
    if (uuid.empty() || uuid.find('?') != std::string::npos) continue;
    if (FieldIn(information, "GPU Excluded") == "Yes") continue;
    devices.push_back({.id = uuid,
                       .pci_address = gpu.path().filename(),
                       .cdi = "nvidia.com/gpu=" + uuid,
                       .variable = "NVIDIA_VISIBLE_DEVICES=" + uuid,
                       .files = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                 "/dev/nvidia" + FieldIn(information, "Device Minor")}});
  }
  std::ranges::sort(devices, {}, &KernelDevice::pci_address);
  return devices;
}

}  // namespace xsched::cli::cuda
