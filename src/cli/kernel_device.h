// A device of this machine as the kernel lists it. It is found without a driver, so also in a container that
// has none.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct KernelDevice {
  std::string id;           // of this piece of hardware, as its vendor's tools print it
  std::string pci_address;  // "0000:3b:00.0"
  std::string cdi;       // what its vendor's tool calls it in a CDI specification; empty: `files` are enough
  std::string variable;  // "NAME=VALUE", by which its vendor's engine gives it to a container; empty: none
  std::vector<std::string> files;  // that its programs open
};

// The value behind "NAME" and then spaces, colons or tabs, in the first line of `path` that begins with it;
// empty: there is none.
std::string FieldIn(const std::string& path, const std::string& name);
// The PCI device answers. One that has fallen off the bus reads as ones.
bool AnswersOnBus(const std::string& root, const std::string& pci_address);
// -1: not known, or the machine has one node only.
int NumaNodeOf(const std::string& root, const std::string& pci_address);

}  // namespace xsched::cli
