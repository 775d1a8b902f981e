// xsched-kubernetes list: which pods have which parts of this node's GPUs, as the kubelet says it. It needs
// neither the API server nor XSched's server, and it knows static pods.
#pragma once

#include <string>

#include "kubernetes/pod_resources.h"

namespace xsched::kubernetes {

struct ListOptions {
  std::string pod_resources = kPodResourcesSocket;
  bool as_json = false;
};

// On standard output. Throws CommandError: the kubelet does not answer.
void ListShares(const ListOptions& options);

}  // namespace xsched::kubernetes
