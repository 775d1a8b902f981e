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
  // tests. `dev`: the machine's /dev, as it is seen from here.
  GpuList(std::vector<cli::KernelDevice> named, std::string root, std::string dev = "/dev");

  // Looks for all of them, and for their files: a driver may make some of them late, with the first program,
  // and gives them other numbers when it is loaded again. A GPU that was there and is not any more stays
  // listed, and does not work. Returns true if anything has changed.
  bool Update();
  const std::vector<Gpu>& all() const { return gpus_; }
  // Null: there is none.
  const Gpu* Find(const std::string& id) const;

 private:
  std::vector<cli::KernelDevice> Listed() const;
  bool IsHere(const std::string& file) const;
  bool HasItsFiles(const cli::KernelDevice& device) const;
  void KeepFilesThatAreHere(cli::KernelDevice& device) const;
  bool Take(const cli::KernelDevice& listed);
  bool Works(const Gpu& gpu, const std::vector<cli::KernelDevice>& listed) const;

  std::string root_;
  std::string dev_;
  std::vector<Gpu> gpus_;
};

// "ID[,cdi=NAME][,file=PATH]…": it works while the files are there. Throws CommandError.
cli::KernelDevice ReadNamedDevice(const std::string& text);

}  // namespace xsched::kubernetes
