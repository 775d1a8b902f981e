#include "cli/kernel_device.h"

#include <fstream>

namespace xsched::cli {
namespace {

std::string FolderOf(const std::string& root, const std::string& pci_address) {
  return root + "/sys/bus/pci/devices/" + pci_address;
}

}  // namespace

std::string FieldIn(const std::string& path, const std::string& name) {
  constexpr const char* kSeparators = " \t:";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::string rest = line.substr(name.size());
    const size_t begin = rest.find_first_not_of(kSeparators);
    if (begin == 0) continue;  // a longer name
    return begin == std::string::npos ? ""
                                      : rest.substr(begin, rest.find_last_not_of(kSeparators) + 1 - begin);
  }
  return "";
}

bool AnswersOnBus(const std::string& root, const std::string& pci_address) {
  std::ifstream config(FolderOf(root, pci_address) + "/config", std::ios::binary);
  char vendor[2] = {};
  return config.read(vendor, sizeof vendor) && (vendor[0] != '\xff' || vendor[1] != '\xff');
}

int NumaNodeOf(const std::string& root, const std::string& pci_address) {
  int node = -1;
  std::ifstream(FolderOf(root, pci_address) + "/numa_node") >> node;
  return node;
}

}  // namespace xsched::cli
