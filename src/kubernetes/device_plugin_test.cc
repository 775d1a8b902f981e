// The agent's device plugin, as a process, with a fake kubelet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "kubernetes/testing/agent_process.h"
#include "kubernetes/testing/fake_kubelet.h"
#include "kubernetes/testing/interface_text.h"
#include "kubernetes/testing/node_folder.h"
#include "server/testing/server_process.h"

namespace xsched::kubernetes {
namespace {

using testing::AgentProcess;
using testing::FakeKubelet;
using testing::Following;
using ::testing::HasSubstr;
using testing::NodeFolder;
using ::testing::StartsWith;

constexpr const char* kGpuA = "GPU-aaaaaaaa-4820-abfc-e83e-94318197576e";
constexpr const char* kGpuB = "GPU-bbbbbbbb-4820-abfc-e83e-94318197576e";
constexpr const char* kAddressA = "0000:3b:00.0";

// testing::TextOf, as Kubernetes has published it.
constexpr const char* kPublished = R"(
Registration.Register RegisterRequest Empty
DevicePlugin.GetDevicePluginOptions Empty DevicePluginOptions
DevicePlugin.ListAndWatch Empty stream ListAndWatchResponse
DevicePlugin.GetPreferredAllocation PreferredAllocationRequest PreferredAllocationResponse
DevicePlugin.Allocate AllocateRequest AllocateResponse
DevicePlugin.PreStartContainer PreStartContainerRequest PreStartContainerResponse
DevicePluginOptions.pre_start_required 1 bool
DevicePluginOptions.get_preferred_allocation_available 2 bool
RegisterRequest.version 1 string
RegisterRequest.endpoint 2 string
RegisterRequest.resource_name 3 string
RegisterRequest.options 4 DevicePluginOptions
NUMANode.ID 1 int64
TopologyInfo.nodes 1 repeated NUMANode
Device.ID 1 string
Device.health 2 string
Device.topology 3 TopologyInfo
ListAndWatchResponse.devices 1 repeated Device
PreStartContainerRequest.devices_ids 1 repeated string
ContainerPreferredAllocationRequest.available_deviceIDs 1 repeated string
ContainerPreferredAllocationRequest.must_include_deviceIDs 2 repeated string
ContainerPreferredAllocationRequest.allocation_size 3 int32
PreferredAllocationRequest.container_requests 1 repeated ContainerPreferredAllocationRequest
ContainerPreferredAllocationResponse.deviceIDs 1 repeated string
PreferredAllocationResponse.container_responses 1 repeated ContainerPreferredAllocationResponse
ContainerAllocateRequest.devices_ids 1 repeated string
AllocateRequest.container_requests 1 repeated ContainerAllocateRequest
CDIDevice.name 1 string
Mount.container_path 1 string
Mount.host_path 2 string
Mount.read_only 3 bool
DeviceSpec.container_path 1 string
DeviceSpec.host_path 2 string
DeviceSpec.permissions 3 string
ContainerAllocateResponse.envs 1 repeated EnvsEntry
ContainerAllocateResponse.mounts 2 repeated Mount
ContainerAllocateResponse.devices 3 repeated DeviceSpec
ContainerAllocateResponse.annotations 4 repeated AnnotationsEntry
ContainerAllocateResponse.cdi_devices 5 repeated CDIDevice
AllocateResponse.container_responses 1 repeated ContainerAllocateResponse
)";

TEST(KubernetesInterface, device_plugins_have_the_names_and_numbers_that_are_published) {
  const auto& file = *v1beta1::Device::descriptor()->file();
  EXPECT_EQ(file.package(), "v1beta1");
  EXPECT_EQ(testing::TextOf(file), kPublished);
}

class KubernetesDevicePlugin : public ::testing::Test {
 protected:
  KubernetesDevicePlugin() {
    std::filesystem::create_directories(kubelet_folder_);
    std::filesystem::create_directories(run_ + "/xsched");
  }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {
        "devices", "--kubelet-folder", kubelet_folder_, "--cdi-folder",        run_ + "/cdi",
        "--root",  node_.path(),       "--dev",         node_.path() + "/dev", "--look-period-ms",
        "200"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string socket() const { return run_ + "/xsched/xserver.sock"; }

  static v1beta1::AllocateResponse Allocate(v1beta1::DevicePlugin::Stub& plugin,
                                            const std::vector<std::string>& ids,
                                            const grpc::Status& wanted = grpc::Status::OK) {
    grpc::ClientContext context;
    v1beta1::AllocateRequest request;
    request.add_container_requests()->mutable_devices_ids()->Add(ids.begin(), ids.end());
    v1beta1::AllocateResponse answer;
    const grpc::Status status = plugin.Allocate(&context, request, &answer);
    EXPECT_EQ(status.error_code(), wanted.error_code()) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(wanted.error_message()));
    return answer;
  }
  static std::vector<std::string> SharesOf(const std::string& gpu, int begin, int end) {
    std::vector<std::string> ids;
    for (int number = begin; number < end; ++number) ids.push_back(gpu + "::" + std::to_string(number));
    return ids;
  }
  nlohmann::json Specification() const {
    return nlohmann::json::parse(std::ifstream(run_ + "/cdi/xsched-share.json"));
  }

  server::testing::TempFolder folder_;
  NodeFolder node_;
  const std::string run_ = folder_.path();
  const std::string kubelet_folder_ = run_ + "/device-plugins";
};

TEST_F(KubernetesDevicePlugin, registers_itself_with_all_that_the_kubelet_asks_for) {
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const v1beta1::RegisterRequest request = kubelet.WaitForRegistration();
  EXPECT_EQ(request.version(), "v1beta1") << agent.said();
  EXPECT_EQ(request.endpoint(), "xsched-share.sock");
  EXPECT_EQ(request.resource_name(), "xsched.org/share");
  EXPECT_TRUE(request.options().get_preferred_allocation_available());
  EXPECT_FALSE(request.options().pre_start_required());
  const auto plugin = kubelet.Plugin();
  grpc::ClientContext context;
  v1beta1::DevicePluginOptions options;
  ASSERT_TRUE(plugin->GetDevicePluginOptions(&context, v1beta1::Empty(), &options).ok());
  EXPECT_EQ(options.SerializeAsString(), request.options().SerializeAsString());
  grpc::ClientContext next;
  v1beta1::PreStartContainerResponse started;
  EXPECT_TRUE(plugin->PreStartContainer(&next, v1beta1::PreStartContainerRequest(), &started).ok());
}

TEST_F(KubernetesDevicePlugin, lists_each_gpu_as_a_hundred_shares_without_its_node_of_memory) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  node_.AddHipGpu("0000:c1:00.0", 0x1234, 128);
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();
  Following following(*plugin);
  const v1beta1::ListAndWatchResponse list = following.First();
  std::set<std::string> ids;
  for (const v1beta1::Device& device : list.devices()) {
    ids.insert(device.id());
    EXPECT_EQ(device.health(), "Healthy");
    EXPECT_FALSE(device.has_topology()) << "the kubelet would choose NUMA nodes by numbers of shares";
  }
  EXPECT_EQ(ids.size(), 200u) << agent.said();
  EXPECT_EQ(ids.count(std::string(kGpuA) + "::0") + ids.count("GPU-0000000000001234::99"), 2u);
}

TEST_F(KubernetesDevicePlugin, says_so_when_a_gpu_stops_working_or_comes) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();
  Following following(*plugin);
  auto is_all = [](const char* health, int count) {
    return [=](const v1beta1::ListAndWatchResponse& list) {
      return list.devices_size() == count && std::ranges::all_of(list.devices(), [&](const auto& device) {
               return device.health() == health;
             });
    };
  };
  EXPECT_EQ(following.WaitFor(is_all("Healthy", 100)).devices_size(), 100);
  node_.TakeOffBus(kAddressA);
  EXPECT_EQ(following.WaitFor(is_all("Unhealthy", 100)).devices_size(), 100) << agent.said();
  Allocate(*plugin, SharesOf(kGpuA, 0, 10),
           {grpc::StatusCode::FAILED_PRECONDITION, "does not work any more"});
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  node_.AddCudaGpu("0000:5e:00.0", kGpuB, 1);
  EXPECT_EQ(following.WaitFor(is_all("Healthy", 200)).devices_size(), 200) << agent.said();
}

TEST_F(KubernetesDevicePlugin, prefers_the_gpu_that_has_least_left) {
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();
  v1beta1::PreferredAllocationRequest request;
  for (const int size : {15, 40}) {
    auto& container = *request.add_container_requests();
    for (const auto& ids : {SharesOf("a", 0, 100), SharesOf("b", 80, 100)})
      container.mutable_available_deviceids()->Add(ids.begin(), ids.end());
    container.set_allocation_size(size);
  }
  request.mutable_container_requests(1)->add_must_include_deviceids("a::50");
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse answer;
  ASSERT_TRUE(plugin->GetPreferredAllocation(&context, request, &answer).ok());
  ASSERT_EQ(answer.container_responses_size(), 2);
  const auto& first = answer.container_responses(0).deviceids();
  EXPECT_EQ(std::vector<std::string>(first.begin(), first.end()), SharesOf("b", 80, 95));
  EXPECT_EQ(answer.container_responses(1).deviceids_size(), 40);
  EXPECT_THAT(answer.container_responses(1).deviceids(), ::testing::Contains("a::50"));
  request.mutable_container_requests(0)->set_allocation_size(101);
  grpc::ClientContext next;
  const grpc::Status refused = plugin->GetPreferredAllocation(&next, request, &answer);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("a multiple of 100"));
}

TEST_F(KubernetesDevicePlugin, gives_a_container_its_gpu_and_its_share_by_cdi) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  node_.AddCudaGpu("0000:5e:00.0", kGpuB, 1);
  node_.AddHipGpu("0000:c1:00.0", 0x1234, 128);
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();

  const v1beta1::AllocateResponse part = Allocate(*plugin, SharesOf(kGpuA, 5, 35));
  ASSERT_EQ(part.container_responses_size(), 1) << agent.said();
  const auto& given = part.container_responses(0);
  ASSERT_EQ(given.cdi_devices_size(), 2);
  EXPECT_EQ(given.cdi_devices(0).name(), std::string("nvidia.com/gpu=") + kGpuA);
  EXPECT_EQ(given.cdi_devices(1).name(), "xsched.org/share=30");
  EXPECT_EQ(given.envs_size() + given.mounts_size() + given.devices_size() + given.annotations_size(), 0);

  const v1beta1::AllocateResponse files = Allocate(*plugin, SharesOf("GPU-0000000000001234", 0, 1));
  ASSERT_EQ(files.container_responses(0).devices_size(), 2);
  EXPECT_EQ(files.container_responses(0).devices(0).host_path(), "/dev/kfd");
  EXPECT_EQ(files.container_responses(0).devices(1).container_path(), "/dev/dri/renderD128");
  EXPECT_EQ(files.container_responses(0).devices(1).permissions(), "rw");
  EXPECT_EQ(files.container_responses(0).cdi_devices(0).name(), "xsched.org/share=1");

  std::vector<std::string> both = SharesOf(kGpuA, 0, 100);
  for (const std::string& id : SharesOf(kGpuB, 0, 100)) both.push_back(id);
  const v1beta1::AllocateResponse whole = Allocate(*plugin, both);
  EXPECT_EQ(whole.container_responses(0).cdi_devices_size(), 3);
  EXPECT_EQ(whole.container_responses(0).cdi_devices(2).name(), "xsched.org/share=100");
}

TEST_F(KubernetesDevicePlugin, writes_the_specification_of_the_shares) {
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  kubelet.WaitForRegistration();
  const nlohmann::json specification = Specification();
  EXPECT_EQ(specification["kind"], "xsched.org/share");
  ASSERT_EQ(specification["devices"].size(), 100u);
  EXPECT_EQ(specification["devices"][29]["name"], "30");
  EXPECT_THAT(specification["devices"][29]["containerEdits"]["env"],
              ::testing::Contains("XSCHED_AUTO_XQUEUE_UTILIZATION=30"));
  EXPECT_THAT(specification["containerEdits"]["env"],
              ::testing::Contains("XSCHED_SOCKET=/run/xsched/xserver.sock"));
  EXPECT_EQ(specification["containerEdits"]["mounts"][0]["hostPath"], run_ + "/xsched");
}

TEST_F(KubernetesDevicePlugin, removes_what_a_killed_agent_has_left_unfinished) {
  const std::string left = run_ + "/cdi/xsched-share.json.new-abcdef";
  std::filesystem::create_directories(run_ + "/cdi");
  std::ofstream(left) << "{";
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  kubelet.WaitForRegistration();
  EXPECT_FALSE(std::filesystem::exists(left)) << agent.said();
}

TEST_F(KubernetesDevicePlugin, refuses_what_is_neither_a_part_of_one_gpu_nor_whole_gpus) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments({"--device", "cpu0"}), socket());
  const auto plugin = kubelet.Plugin();
  const auto code = grpc::StatusCode::FAILED_PRECONDITION;
  std::vector<std::string> spread = SharesOf(kGpuA, 0, 30);
  for (const std::string& id : SharesOf("cpu0", 0, 20)) spread.push_back(id);
  Allocate(*plugin, spread, {code, "50 shares would be parts of several GPUs"});
  Allocate(*plugin, SharesOf("other", 0, 20), {code, "this node has no GPU other"});
  Allocate(*plugin, {"../../etc"}, {code, "is no share of a GPU"});
  Allocate(*plugin, {}, {code, "no share is asked for"});
  Allocate(*plugin, {std::string(100'000, 'x')}, {code, "is no share of a GPU"});
  EXPECT_EQ(Allocate(*plugin, SharesOf("cpu0", 0, 20)).container_responses_size(), 1) << "and goes on";
}

TEST_F(KubernetesDevicePlugin, registers_again_whenever_the_kubelet_has_been_restarted) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  AgentProcess agent(Arguments(), socket());
  for (int i = 0; i < 5; ++i) {
    FakeKubelet kubelet(kubelet_folder_);
    ASSERT_EQ(kubelet.WaitForRegistration().resource_name(), "xsched.org/share") << i << agent.said();
    const auto plugin = kubelet.Plugin();
    Following following(*plugin);
    EXPECT_EQ(following.First().devices_size(), 100) << i << agent.said();
    Allocate(*plugin, SharesOf(kGpuA, 0, 1));
  }
}

TEST_F(KubernetesDevicePlugin, asks_again_when_the_kubelet_refuses_and_says_why_once) {
  FakeKubelet kubelet(kubelet_folder_, 2);
  AgentProcess agent(Arguments(), socket());
  EXPECT_EQ(kubelet.WaitForRegistration().version(), "v1beta1");
  EXPECT_GE(kubelet.requests(), 3u);
  const std::string said = agent.said();
  const std::string reason = "the requested device plugin API version is not supported";
  EXPECT_THAT(said, HasSubstr("the kubelet does not register xsched.org/share: " + reason));
  EXPECT_EQ(said.find(reason), said.rfind(reason)) << said;
}

// As another plugin of the same resource makes it: the kubelet then ends the list of the first one.
TEST_F(KubernetesDevicePlugin, registers_again_when_the_kubelet_does_not_follow_it_any_more) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();
  {
    Following following(*plugin);
    EXPECT_EQ(following.First().devices_size(), 100);
  }
  EXPECT_EQ(kubelet.WaitForRegistration(2).version(), "v1beta1");
  EXPECT_THAT(agent.said(), HasSubstr("does not follow the list of devices any more"));
}

TEST_F(KubernetesDevicePlugin, makes_its_socket_again_when_somebody_removes_it) {
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();
  Following following(*plugin);
  following.First();
  std::filesystem::remove(kubelet_folder_ + "/xsched-share.sock");
  EXPECT_EQ(kubelet.WaitForRegistration(2).endpoint(), "xsched-share.sock");
  EXPECT_TRUE(std::filesystem::exists(kubelet_folder_ + "/xsched-share.sock"));
}

TEST_F(KubernetesDevicePlugin, ends_with_a_message_beside_another_one) {
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  const auto plugin = kubelet.Plugin();
  Following following(*plugin);
  following.First();
  const size_t requests = kubelet.requests();
  AgentProcess second(Arguments(), socket());
  EXPECT_EQ(second.WaitForExit(), 1);
  EXPECT_THAT(second.said(), HasSubstr("another agent serves at " + kubelet_folder_ + "/xsched-share.sock"));
  EXPECT_EQ(kubelet.requests(), requests);
}

TEST_F(KubernetesDevicePlugin, without_the_kubelets_folder_it_ends_with_a_message) {
  std::filesystem::remove_all(kubelet_folder_);
  AgentProcess agent(Arguments(), socket());
  EXPECT_EQ(agent.WaitForExit(), 1);
  EXPECT_THAT(agent.said(), HasSubstr("cannot watch " + kubelet_folder_ + ": No such file or directory"));
  EXPECT_FALSE(std::filesystem::exists(run_ + "/cdi")) << "and leaves nothing behind";
}

TEST_F(KubernetesDevicePlugin, ends_in_order_and_takes_its_socket_with_it) {
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments({"--device", "cpu0"}), socket());
  const auto plugin = kubelet.Plugin();
  Following following(*plugin);
  EXPECT_EQ(following.First().devices_size(), 100);
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.WaitForExit(), 0) << agent.said();
  EXPECT_TRUE(following.WaitForEnd());
  EXPECT_FALSE(std::filesystem::exists(kubelet_folder_ + "/xsched-share.sock"));
}

// An engine that knows no CDI: the kubelet itself gets all that an engine would do.
TEST_F(KubernetesDevicePlugin, without_cdi_it_answers_with_variables_and_mounts) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  FakeKubelet kubelet(kubelet_folder_);
  AgentProcess agent(Arguments({"--without-cdi"}), socket());
  const auto plugin = kubelet.Plugin();
  const v1beta1::AllocateResponse answer = Allocate(*plugin, SharesOf(kGpuA, 0, 30));
  ASSERT_EQ(answer.container_responses_size(), 1) << agent.said();
  const auto& given = answer.container_responses(0);
  EXPECT_EQ(given.cdi_devices_size(), 0);
  const std::map<std::string, std::string> variables(given.envs().begin(), given.envs().end());
  EXPECT_EQ(variables.at("XSCHED_AUTO_XQUEUE_UTILIZATION"), "30");
  EXPECT_EQ(variables.at("XSCHED_AUTO_XQUEUE_WEIGHT"), "30");
  EXPECT_EQ(variables.at("XSCHED_SCHEDULER"), "GLB");
  EXPECT_EQ(variables.at("XSCHED_SOCKET"), "/run/xsched/xserver.sock");
  EXPECT_EQ(variables.at("NVIDIA_VISIBLE_DEVICES"), kGpuA);
  ASSERT_GE(given.mounts_size(), 2);
  for (const v1beta1::Mount& mount : given.mounts()) EXPECT_TRUE(mount.read_only());
  EXPECT_EQ(given.mounts(0).host_path(), run_ + "/xsched");
  EXPECT_EQ(given.mounts(0).container_path(), "/run/xsched");
  EXPECT_THAT(given.mounts(1).container_path(), StartsWith("/opt/xsched/lib/"));
  EXPECT_FALSE(std::filesystem::exists(run_ + "/cdi"));
}

}  // namespace
}  // namespace xsched::kubernetes
