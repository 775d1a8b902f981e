// The kubelet's list of what pods have, with a fake kubelet, and xsched-kubernetes list, as a process.
#include "kubernetes/pod_resources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/agent_process.h"
#include "kubernetes/testing/fake_pod_resources.h"
#include "kubernetes/testing/interface_text.h"
#include "server/testing/server_process.h"

namespace xsched::kubernetes {
namespace {

using testing::AgentProcess;
using testing::FakePodResources;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KubernetesInterface, what_pods_have_has_the_names_and_numbers_that_are_published) {
  const auto& file = *v1::PodResources::descriptor()->file();
  EXPECT_EQ(file.package(), "v1");
  EXPECT_EQ(testing::TextOf(file), R"(
PodResourcesLister.List ListPodResourcesRequest ListPodResourcesResponse
PodResourcesLister.GetAllocatableResources AllocatableResourcesRequest AllocatableResourcesResponse
PodResourcesLister.Get GetPodResourcesRequest GetPodResourcesResponse
AllocatableResourcesResponse.devices 1 repeated ContainerDevices
AllocatableResourcesResponse.cpu_ids 2 repeated int64
AllocatableResourcesResponse.memory 3 repeated ContainerMemory
ListPodResourcesResponse.pod_resources 1 repeated PodResources
PodResources.name 1 string
PodResources.namespace 2 string
PodResources.containers 3 repeated ContainerResources
PodResources.cpu_ids 4 repeated int64
PodResources.memory 5 repeated ContainerMemory
ContainerResources.name 1 string
ContainerResources.devices 2 repeated ContainerDevices
ContainerResources.cpu_ids 3 repeated int64
ContainerResources.memory 4 repeated ContainerMemory
ContainerResources.dynamic_resources 5 repeated DynamicResource
ContainerMemory.memory_type 1 string
ContainerMemory.size 2 uint64
ContainerMemory.topology 3 TopologyInfo
ContainerDevices.resource_name 1 string
ContainerDevices.device_ids 2 repeated string
ContainerDevices.topology 3 TopologyInfo
TopologyInfo.nodes 1 repeated NUMANode
NUMANode.ID 1 int64
DynamicResource.claim_name 2 string
DynamicResource.claim_namespace 3 string
DynamicResource.claim_resources 4 repeated ClaimResource
ClaimResource.cdi_devices 1 repeated CDIDevice
ClaimResource.driver_name 2 string
ClaimResource.pool_name 3 string
ClaimResource.device_name 4 string
ClaimResource.share_id 5 optional string
CDIDevice.name 1 string
GetPodResourcesRequest.pod_name 1 string
GetPodResourcesRequest.pod_namespace 2 string
GetPodResourcesResponse.pod_resources 1 PodResources
)");
}

class KubernetesPodResources : public ::testing::Test {
 protected:
  // Adds shares of GPU-1 and a slot of a claim to a pod. `begin`: of the name of everything.
  static void AddBoth(const std::string& begin, v1::ListPodResourcesResponse& list) {
    v1::PodResources& pod = *list.add_pod_resources();
    pod.set_namespace_("lab");
    pod.set_name(begin + "-pod");
    v1::ContainerResources& container = *pod.add_containers();
    container.set_name(begin + "-container");
    v1::ContainerDevices& devices = *container.add_devices();
    devices.set_resource_name("xsched.org/share");
    for (int i = 0; i < 30; ++i) devices.add_device_ids(fmt::format("GPU-1::{}", i));
    v1::DynamicResource& claim = *container.add_dynamic_resources();
    claim.set_claim_name(begin + "-claim");
    claim.set_claim_namespace("lab");
    v1::ClaimResource& resource = *claim.add_claim_resources();
    resource.add_cdi_devices()->set_name("xsched.org/claim=uid-share");
    resource.set_driver_name("gpu.xsched.org");
    resource.set_pool_name("node-1");
    resource.set_device_name("gpu-1-0-of-10");
  }
  // Other pods, of that many bytes.
  static void AddOthers(size_t bytes, v1::ListPodResourcesResponse& list) {
    constexpr size_t kLongestName = 63;
    while (list.ByteSizeLong() < bytes) {
      v1::ContainerDevices& devices = *list.add_pod_resources()->add_containers()->add_devices();
      for (int i = 0; i < 1000; ++i) devices.add_device_ids(std::string(kLongestName, 'x'));
    }
  }
  std::string ErrorText() const {
    auto list = ListPodResources(socket_);
    return list ? "" : list.error().text();
  }

  const server::testing::TempFolder folder_;
  const std::string socket_ = folder_.path() + "/pod-resources/kubelet.sock";
};

TEST_F(KubernetesPodResources, are_read_as_the_kubelet_says_them) {
  v1::ListPodResourcesResponse said;
  AddBoth("a", said);
  FakePodResources kubelet(socket_);
  kubelet.Set(said);
  auto list = ListPodResources(socket_);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->DebugString(), said.DebugString());
  EXPECT_THAT(kubelet.faults(), IsEmpty());
}

TEST_F(KubernetesPodResources, of_a_kubelet_that_has_started_again_are_read_at_its_new_socket) {
  auto kubelet = std::make_unique<FakePodResources>(socket_);
  ASSERT_TRUE(ListPodResources(socket_));
  kubelet.reset();
  EXPECT_THAT(ErrorText(), HasSubstr("the kubelet does not list pods at " + socket_));
  kubelet = std::make_unique<FakePodResources>(socket_);
  kubelet->AddPod("lab", "new");
  auto list = ListPodResources(socket_);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(NameOf(list->pod_resources(0)), "lab/new");
}

TEST_F(KubernetesPodResources, that_the_kubelet_refuses_are_an_error_with_its_reason) {
  FakePodResources kubelet(socket_);
  kubelet.Refuse({grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"});
  EXPECT_THAT(ErrorText(), HasSubstr("rejected by rate limit (code 8)"));
}

TEST_F(KubernetesPodResources, of_a_node_with_many_devices_are_read_and_without_any_bound_they_are_refused) {
  FakePodResources kubelet(socket_);
  v1::ListPodResourcesResponse said;
  AddOthers(15 << 20, said);
  AddBoth("last", said);
  kubelet.Set(said);
  auto list = ListPodResources(socket_);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->pod_resources_size(), said.pod_resources_size());
  AddOthers(17 << 20, said);
  kubelet.Set(said);
  EXPECT_THAT(ErrorText(), HasSubstr("larger than max"));
}

TEST_F(KubernetesPodResources, are_listed_with_the_parts_of_gpus_that_containers_have) {
  FakePodResources kubelet(socket_);
  v1::ListPodResourcesResponse said;
  AddOthers(1000, said);
  AddBoth("a", said);
  kubelet.Set(said);
  AgentProcess table({"list", "--pod-resources", socket_}, folder_.path() + "/table");
  ASSERT_EQ(table.WaitForExit(), 0) << table.said();
  EXPECT_THAT(table.said(), ::testing::MatchesRegex("POD +CONTAINER +PERCENT +GPU +CLAIM\n"
                                                    "lab/a-pod +a-container +30 +GPU-1 +-\n"
                                                    "lab/a-pod +a-container +10 +gpu-1 +lab/a-claim\n"));
  AgentProcess as_json({"list", "--json", "--pod-resources", socket_}, folder_.path() + "/json");
  ASSERT_EQ(as_json.WaitForExit(), 0) << as_json.said();
  EXPECT_EQ(nlohmann::json::parse(as_json.said(), nullptr, false), nlohmann::json::parse(R"([
    {"pod": "lab/a-pod", "container": "a-container", "gpu": "GPU-1", "percent": 30},
    {"pod": "lab/a-pod", "container": "a-container", "gpu": "gpu-1", "percent": 10, "claim": "lab/a-claim"}])"));
}

TEST_F(KubernetesPodResources, are_not_listed_without_a_kubelet) {
  AgentProcess list({"list", "--pod-resources", socket_}, folder_.path() + "/list");
  EXPECT_EQ(list.WaitForExit(), 1);
  EXPECT_THAT(list.said(), HasSubstr("xsched-kubernetes: the kubelet does not list pods at " + socket_));
}

}  // namespace
}  // namespace xsched::kubernetes
