// xsched-kubernetes pods: gives the queues of each pod's programs the priority that its pod has, and no more
// than it may have. What programs claim themselves afterwards counts up to that as well.
//
// All priorities of pods are then an administrator's. So no claim of one pod lowers those of others, whatever
// tenant they belong to (docs/tenants.md).
//
// Which pod a process belongs to is said by its control group, as for the server's tenants. So this must run
// in the pid namespace of the machine. It needs the server's user, or root: it sets hints as an
// administrator.
#pragma once

#include <chrono>
#include <string>

#include "kubernetes/api_server.h"
#include "kubernetes/pod_resources.h"

namespace xsched::kubernetes {

struct PodOptions {
  std::string node;  // its name in the cluster
  std::string api_server;
  std::string account = kServiceAccount;
  std::string pod_resources = kPodResourcesSocket;  // the kubelet's
  int max_priority = 255;
  bool reads_claims = false;  // a priority that a ResourceClaim asks for counts, too
  std::chrono::milliseconds look_period = std::chrono::seconds(1);
  // How old may be what is known of pods.
  std::chrono::milliseconds refresh_period = std::chrono::minutes(1);
};

// Until SIGTERM or SIGINT. Throws std::exception.
void ServePods(const PodOptions& options);

}  // namespace xsched::kubernetes
