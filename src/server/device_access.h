// Which devices a client can use. A queue counts only on a device that its process can use: otherwise anybody
// could hold the programs on a GPU that is closed to them. A process shows this by a descriptor of the
// device's file, which the kernel gave to nobody else but who may open it (or to whom such a one passed it).
// So this also holds in containers, and says nothing of what the process claims itself.
//
// Not every device has a file: a processor can be used by everybody.
//
// A client chooses how many files it shows, and for how many queues. So a file is looked up once, when it is
// shown, and what is asked for a device later costs the same however many files there are. All look-ups are
// counted: they are charged to the client's user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/pci_address.h"

namespace xsched::server {

// What a process has shown.
struct ShownDevices {
  std::vector<dev_t> files;
  // Where the files belong, as text: PCI addresses, and those without the function if all functions are
  // meant.
  std::vector<std::string> addresses;
  // The parts of AMD's GPUs, where their number is known. NVIDIA's have the files of the whole GPU.
  std::vector<XDevice> parts;
};

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

  // The process shows this file as well. False: it is shown already, or there are too many; nothing has
  // changed.
  bool Show(dev_t file, ShownDevices& shown);
  // True if a process that has shown this can use the device, or need not show anything for it.
  bool MayUse(const ShownDevices& shown, XDevice device);
  // How often a file or a folder was looked up, since the server began.
  uint64_t look_ups() const { return look_ups_; }

 private:
  bool NeedsFile(XDevice device, const std::string& address);
  bool NeedsPartsFile(XDevice device, const std::string& address);
  std::string VendorAt(const std::string& address);
  bool IsNvidias(const std::vector<dev_t>& files, const std::string& address);
  void AddPart(unsigned render_minor, ShownDevices& shown);
  // `path`, which is looked up now.
  std::string LookUp(std::string path);

  bool needed_;
  Folders folders_;
  uint64_t look_ups_ = 0;
};

}  // namespace xsched::server
