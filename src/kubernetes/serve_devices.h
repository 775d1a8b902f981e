// xsched-kubernetes devices: the node's GPUs as shares, for the kubelet.
#pragma once

#include <string>

#include "kubernetes/kubelet.h"
#include "kubernetes/node_options.h"

namespace xsched::kubernetes {

struct DeviceOptions : NodeOptions {
  std::string kubelet_folder = kKubeletFolder;
  bool with_cdi = true;
};

// Until SIGTERM or SIGINT. Throws std::exception.
void ServeDevices(const DeviceOptions& options);

}  // namespace xsched::kubernetes
