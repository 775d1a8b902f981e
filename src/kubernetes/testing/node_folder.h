// A folder with the parts of /proc and /sys that list GPUs.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace xsched::kubernetes::testing {

class NodeFolder {
 public:
  NodeFolder() {
    std::string path = std::filesystem::temp_directory_path() / "xsched-node-XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~NodeFolder() { std::filesystem::remove_all(path_); }
  NodeFolder(const NodeFolder&) = delete;
  NodeFolder& operator=(const NodeFolder&) = delete;
  const std::string& path() const { return path_; }

  void AddCudaGpu(const std::string& address, const std::string& uuid, int minor,
                  const char* excluded = "No") const {
    Write("/proc/driver/nvidia/gpus/" + address + "/information",
          fmt::format("Model: \t\t NVIDIA H100\nIRQ:   \t\t 44\nGPU UUID: \t {}\nBus Location: \t {}\n"
                      "Device Minor: \t {}\nGPU Excluded:\t {}\n",
                      uuid, address, minor, excluded));
    PutOnBus(address);
  }
  void AddHipGpu(const std::string& address, uint64_t unique_id, int render_minor,
                 int simd_count = 416) const {
    AddHipNode(address, 0, unique_id, render_minor, simd_count);
    PutOnBus(address);
  }
  // A further part of a divided GPU, with its number where the kernel puts it into the location.
  void AddHipPart(const std::string& address, unsigned part, uint64_t unique_id, int render_minor) const {
    AddHipNode(address, part, unique_id, render_minor, 52);
  }
  void AddFile(const std::string& path) const { Write(path, ""); }
  // Its driver is not loaded any more.
  void RemoveHipGpus() const { std::filesystem::remove_all(path_ + "/sys/class/kfd"); }
  void TakeOffBus(const std::string& address) const { WriteConfig(address, "\xff\xff\xff\xff"); }

 private:
  void AddHipNode(const std::string& address, unsigned part, uint64_t unique_id, int render_minor,
                  int simd_count) const {
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned device = 0;
    sscanf(address.c_str(), "%x:%x:%x", &domain, &bus, &device);
    Write("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(nodes_++) + "/properties",
          fmt::format("cpu_cores_count 0\nsimd_count {}\nsimd_id_base 7\nlocation_id {}\ndomain {}\n"
                      "drm_render_minor {}\nunique_id {}\n",
                      simd_count, bus << 8 | device << 3 | part, domain, render_minor, unique_id));
  }
  void PutOnBus(const std::string& address) const {
    WriteConfig(address, "\xde\x10\x30\x23");
    Write("/sys/bus/pci/devices/" + address + "/numa_node", "1\n");
  }
  void WriteConfig(const std::string& address, const std::string& bytes) const {
    Write("/sys/bus/pci/devices/" + address + "/config", bytes);
  }
  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text;
  }

  std::string path_;
  mutable int nodes_ = 0;
};

}  // namespace xsched::kubernetes::testing
