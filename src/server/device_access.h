// Which devices a client can use. A queue counts only on a device that its process can use: otherwise anybody
// could hold the programs on a GPU that is closed to them. A process shows this by a descriptor of the
// device's file, which the kernel gave to nobody else but who may open it (or to whom such a one passed it).
// So this also holds in containers, and says nothing of what the process claims itself.
//
// Not every device has a file: a processor can be used by everybody.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/pci_address.h"

namespace xsched::server {

class DeviceAccess {
 public:
  // Where the kernel says which file is of which device. Tests have their own.
  struct Folders {
    std::string sys = "/sys";
    std::string nvidia = "/proc/driver/nvidia/gpus";
  };
  // `needed`: several users are served. One user alone may do as they like.
  explicit DeviceAccess(bool needed) : DeviceAccess(needed, Folders{}) {}
  DeviceAccess(bool needed, Folders folders) : needed_(needed), folders_(std::move(folders)) {}

  // The device's file that this descriptor has open; nullopt: it is of none, or does not allow to use it
  // (O_PATH).
  static std::optional<dev_t> FileOf(int fd);
  // True if a process that shows `files` can use the device, or need not show anything for it.
  bool MayUse(const std::vector<dev_t>& files, XDevice device) const;

 private:
  bool NeedsFile(XDevice device, const std::string& address) const;
  bool IsOf(dev_t file, const std::string& address) const;
  // True if the file is that of a part of the GPU at this address.
  bool IsOfPart(unsigned render_minor, const std::string& address) const;

  bool needed_;
  Folders folders_;
};

}  // namespace xsched::server
