// xsched-kubernetes claims: the node's GPUs for ResourceClaims, by dynamic resource allocation (DRA).
#pragma once

#include <chrono>
#include <string>

#include "kubernetes/dra_devices.h"
#include "kubernetes/node_options.h"
#include "kubernetes/plugin_registry.h"

namespace xsched::kubernetes {

struct ClaimOptions : NodeOptions {
  std::string kubelet_home = kKubeletHome;
  std::string node;  // its name in the cluster
  std::string api_server;
  std::string account = kServiceAccount;
  Division division;
  // How long ResourceSlices that somebody has removed may be missing.
  std::chrono::milliseconds publish_period = std::chrono::minutes(1);
};

// Until SIGTERM or SIGINT. Throws std::exception.
void ServeClaims(const ClaimOptions& options);

}  // namespace xsched::kubernetes
