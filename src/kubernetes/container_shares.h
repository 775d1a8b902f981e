// Which container has which part of which GPU, by the kubelet's list of what pods have. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pod_resources.pb.h"

namespace xsched::kubernetes {

struct ContainerShare {
  std::string pod;  // "namespace/name"
  std::string container;
  std::string gpu;             // its id; of a claim: as its devices are named (dra_devices.h)
  std::optional<int> percent;  // of this GPU; nullopt: the list does not say it (claims by capacity)
  std::string claim;           // "namespace/name"; empty: it is a share

  bool operator==(const ContainerShare&) const = default;
};

// In the order of the list. Resources of others are left out.
std::vector<ContainerShare> ContainerSharesIn(const v1::ListPodResourcesResponse& list);

}  // namespace xsched::kubernetes
