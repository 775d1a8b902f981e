// The files in which the kernel's driver lists its GPUs, in a folder of a test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/pci_address.h"

namespace xsched::hip::kfd::testing {

class Topology {
 public:
  Topology() {
    char name[] = "/tmp/xsched-kfd-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~Topology() { std::filesystem::remove_all(root_); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Adds a node. It is a CPU if `gpu` is 0. `part`: the part of a GPU that is several nodes.
  void Add(uint32_t gpu, uint32_t bus = 0, uint32_t domain = 0, uint32_t part = 0) {
    const std::string node = "class/kfd/kfd/topology/nodes/" + std::to_string(nodes_++);
    Write(node + "/gpu_id", std::to_string(gpu) + "\n");
    Write(node + "/properties", "cpu_cores_count 0\nsimd_count 1216\nlocation_id " +
                                    std::to_string(part << 28 | bus << 8) + "\ndomain " +
                                    std::to_string(domain) + "\n");
  }
  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  const char* root() const { return root_.c_str(); }

  static XDevice Device(uint32_t bus, uint32_t domain = 0) {
    return MakeDevice(kDeviceTypeGPU, PciAddress(domain, bus, 0, 0));
  }

 private:
  std::string root_;
  int nodes_ = 0;
};

}  // namespace xsched::hip::kfd::testing
