// The GPUs of this node, and whether they work.
#pragma once

#include <string>
#include <vector>

#include "cli/kernel_device.h"

namespace xsched::kubernetes {

struct Gpu {
  cli::KernelDevice device;
  bool is_named = false;  // by an option, and not listed by the kernel
  bool works = true;
  int numa_node = -1;
};

class GpuList {
 public:
  // `named`: further devices, as ReadNamedDevice reads them. `root`: the folder of /proc and /sys, "" but in
  // tests.
  GpuList(std::vector<cli::KernelDevice> named, std::string root);

  // Looks for all of them. One that was there and is not any more stays listed, and does not work. Returns
  // true if anything has changed.
  bool Update();
  const std::vector<Gpu>& all() const { return gpus_; }
  // Null: there is none.
  const Gpu* Find(const std::string& id) const;

 private:
  bool Works(const Gpu& gpu, const std::vector<cli::KernelDevice>& listed) const;

  std::string root_;
  std::vector<Gpu> gpus_;
};

// "ID[,cdi=NAME][,file=PATH]…": it works while the files are there. Throws CommandError.
cli::KernelDevice ReadNamedDevice(const std::string& text);

}  // namespace xsched::kubernetes
