#include "kubernetes/container_shares.h"

#include <map>
#include <set>

#include "kubernetes/device_plugin.h"
#include "kubernetes/dra_devices.h"
#include "kubernetes/pod_resources.h"
#include "kubernetes/shares.h"

namespace xsched::kubernetes {
namespace {

// By GPU. The kubelet may list each device by itself.
std::map<std::string, std::set<int>> NumbersOf(const v1::ContainerResources& container) {
  std::map<std::string, std::set<int>> numbers;
  for (const v1::ContainerDevices& devices : container.devices()) {
    if (devices.resource_name() != kShareResource) continue;
    for (const std::string& id : devices.device_ids()) {
      if (const std::optional<Share> share = ReadShareId(id)) numbers[share->gpu].insert(share->number);
    }
  }
  return numbers;
}

std::set<std::string> DevicesOf(const v1::DynamicResource& claim) {
  std::set<std::string> devices;
  for (const v1::ClaimResource& resource : claim.claim_resources()) {
    if (resource.driver_name() == kDriver) devices.insert(resource.device_name());
  }
  return devices;
}

// By GPU.
std::map<std::string, std::optional<int>> PercentsOf(const v1::DynamicResource& claim) {
  std::map<std::string, std::optional<int>> percents;
  for (const std::string& device : DevicesOf(claim)) {
    const std::optional<DraSlot> slot = SlotOf(device);
    std::optional<int>& percent = percents[slot ? slot->gpu : device];
    if (slot) percent = percent.value_or(0) + PercentOfSlot(slot->slots);
  }
  return percents;
}

}  // namespace

std::vector<ContainerShare> ContainerSharesIn(const v1::ListPodResourcesResponse& list) {
  std::vector<ContainerShare> shares;
  for (const v1::PodResources& pod : list.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const auto& [gpu, numbers] : NumbersOf(container))
        shares.push_back({NameOf(pod), container.name(), gpu, static_cast<int>(numbers.size()), ""});
      for (const v1::DynamicResource& claim : container.dynamic_resources()) {
        for (const auto& [gpu, percent] : PercentsOf(claim)) {
          shares.push_back({NameOf(pod), container.name(), gpu, percent,
                            claim.claim_namespace() + "/" + claim.claim_name()});
        }
      }
    }
  }
  return shares;
}

}  // namespace xsched::kubernetes
