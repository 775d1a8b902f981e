// xsched-kubernetes devices: the node's GPUs as shares, for the kubelet.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "kubernetes/kubelet.h"

namespace xsched::kubernetes {

struct DeviceOptions {
  std::string kubelet_folder = kKubeletFolder;
  std::string cdi_folder = "/var/run/cdi";
  std::vector<std::string> named;  // ReadNamedDevice
  std::string route = "layer";
  bool with_cdi = true;
  std::string root;  // of /proc and /sys
  std::chrono::milliseconds look_period = std::chrono::seconds(5);
};

// Until SIGTERM or SIGINT. Throws std::exception.
void ServeDevices(const DeviceOptions& options);

}  // namespace xsched::kubernetes
