// What the kubelet says of the pods of this node: their names, and which devices their containers have.
//
// It knows static pods, and answers without the API server. It says no uid, so its answer alone does not say
// to which of these pods a process belongs.
#pragma once

#include <string>

#include "base/result.h"
#include "pod_resources.pb.h"

namespace xsched::kubernetes {

inline constexpr const char* kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

// "namespace/name"
inline std::string NameOf(const v1::PodResources& pod) { return pod.namespace_() + "/" + pod.name(); }

// The error says what the kubelet, or the connection, says.
Result<v1::ListPodResourcesResponse> ListPodResources(const std::string& socket);

}  // namespace xsched::kubernetes
