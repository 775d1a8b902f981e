// The agent's DRA driver, as a process, with a fake kubelet and a fake API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "kubernetes/testing/agent_process.h"
#include "kubernetes/testing/claim_json.h"
#include "kubernetes/testing/fake_api_server.h"
#include "kubernetes/testing/fake_plugin_watcher.h"
#include "kubernetes/testing/interface_text.h"
#include "kubernetes/testing/node_folder.h"
#include "server/testing/server_process.h"

namespace xsched::kubernetes {
namespace {

namespace fs = std::filesystem;
namespace dra = testing::dra;
using nlohmann::json;
using testing::AgentProcess;
using testing::ClaimJson;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeApiServer;
using testing::FakePluginWatcher;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNodeName;
using testing::kNodeUid;
using testing::NodeFolder;
using testing::ParametersJson;
using testing::ResultJson;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr const char* kGpuA = "GPU-aaaaaaaa-4820-abfc-e83e-94318197576e";
constexpr const char* kSlotsOfA = "gpu-aaaaaaaa-4820-abfc-e83e-94318197576e";
constexpr const char* kGpuB = "GPU-bbbbbbbb-4820-abfc-e83e-94318197576e";
constexpr const char* kAddressA = "0000:3b:00.0";
constexpr const char* kUid = "c1a1a1a1-0000-4000-8000-000000000001";
constexpr const char* kOtherUid = "c2b2b2b2-0000-4000-8000-000000000002";
constexpr const char* kSocket = "gpu.xsched.org-reg.sock";
constexpr const char* kReadsClaim = "GET /apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/train";

TEST(KubernetesInterface, drivers_of_claims_have_the_names_and_numbers_that_are_published) {
  const auto& file = *dra::Claim::descriptor()->file();
  EXPECT_EQ(file.package(), "k8s.io.kubelet.pkg.apis.dra.v1");
  EXPECT_EQ(testing::TextOf(file), R"(
DRAPlugin.NodePrepareResources NodePrepareResourcesRequest NodePrepareResourcesResponse
DRAPlugin.NodeUnprepareResources NodeUnprepareResourcesRequest NodeUnprepareResourcesResponse
NodePrepareResourcesRequest.claims 1 repeated Claim
NodePrepareResourcesResponse.claims 1 repeated ClaimsEntry
NodePrepareResourceResponse.devices 1 repeated Device
NodePrepareResourceResponse.error 2 string
Device.request_names 1 repeated string
Device.pool_name 2 string
Device.device_name 3 string
Device.cdi_device_ids 4 repeated string
Device.share_id 5 optional string
NodeUnprepareResourcesRequest.claims 1 repeated Claim
NodeUnprepareResourcesResponse.claims 1 repeated ClaimsEntry
NodeUnprepareResourceResponse.error 1 string
Claim.namespace 1 string
Claim.uid 2 string
Claim.name 3 string
)");
}

TEST(KubernetesInterface, the_registration_of_plugins_has_the_names_and_numbers_that_are_published) {
  const auto& file = *pluginregistration::PluginInfo::descriptor()->file();
  EXPECT_EQ(file.package(), "pluginregistration");
  EXPECT_EQ(testing::TextOf(file), R"(
Registration.GetInfo InfoRequest PluginInfo
Registration.NotifyRegistrationStatus RegistrationStatus RegistrationStatusResponse
PluginInfo.type 1 string
PluginInfo.name 2 string
PluginInfo.endpoint 3 string
PluginInfo.supported_versions 4 repeated string
RegistrationStatus.plugin_registered 1 bool
RegistrationStatus.error 2 string
)");
}

class KubernetesClaims : public ::testing::Test {
 protected:
  KubernetesClaims() { fs::create_directories(run_ + "/xsched"); }
  ~KubernetesClaims() override { EXPECT_THAT(api_.faults(), IsEmpty()); }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"claims",
                                    "--node",
                                    kNodeName,
                                    "--api-server",
                                    api_.url(),
                                    "--account",
                                    run_ + "/account",
                                    "--kubelet-home",
                                    home_,
                                    "--cdi-folder",
                                    run_ + "/cdi",
                                    "--root",
                                    node_.path(),
                                    "--dev",
                                    node_.path() + "/dev",
                                    "--look-period-ms",
                                    "100",
                                    "--publish-period-ms",
                                    "100"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string socket() const { return run_ + "/xsched/xserver.sock"; }

  // `count` slots of a GPU of ten.
  static json Slots(int count, const std::string& request = "share") {
    json results = json::array();
    for (int slot = 0; slot < count; ++slot)
      results.push_back(ResultJson(request, std::string(kSlotsOfA) + "-" + std::to_string(slot) + "-of-10"));
    return results;
  }
  static dra::NodePrepareResourceResponse Prepare(dra::DRAPlugin::Stub& driver, const std::string& uid,
                                                  const std::string& name = "train",
                                                  const std::string& name_space = "lab") {
    dra::NodePrepareResourcesRequest request;
    dra::Claim& claim = *request.add_claims();
    claim.set_namespace_(name_space);
    claim.set_uid(uid);
    claim.set_name(name);
    grpc::ClientContext context;
    dra::NodePrepareResourcesResponse answer;
    const grpc::Status status = driver.NodePrepareResources(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(answer.claims().size(), 1u) << "each claim of the request is answered, and no other";
    return answer.claims().at(uid);
  }
  static std::string Unprepare(dra::DRAPlugin::Stub& driver, const std::string& uid) {
    dra::NodeUnprepareResourcesRequest request;
    dra::Claim& claim = *request.add_claims();
    claim.set_namespace_("lab");
    claim.set_uid(uid);
    claim.set_name("train");
    grpc::ClientContext context;
    dra::NodeUnprepareResourcesResponse answer;
    const grpc::Status status = driver.NodeUnprepareResources(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(answer.claims().size(), 1u);
    return answer.claims().at(uid).error();
  }
  std::string SpecificationPath(const std::string& uid) const {
    return run_ + "/cdi/xsched-claim-" + uid + ".json";
  }

  server::testing::TempFolder folder_;
  NodeFolder node_;
  const std::string run_ = folder_.path();
  const std::string home_ = run_ + "/kubelet";
  FakeApiServer api_{run_ + "/account"};
};

TEST_F(KubernetesClaims, registers_the_driver_with_all_that_the_kubelet_asks_for) {
  const FakePluginWatcher kubelet(home_);
  const AgentProcess agent(Arguments(), socket());
  const pluginregistration::PluginInfo info = kubelet.WaitForPlugin(kSocket);
  EXPECT_EQ(info.type(), "DRAPlugin") << agent.said();
  EXPECT_EQ(info.name(), "gpu.xsched.org");
  EXPECT_EQ(info.endpoint(), home_ + "/plugins/gpu.xsched.org/dra.sock");
  EXPECT_THAT(info.supported_versions(), ElementsAre("v1.DRAPlugin"));
  EXPECT_TRUE(kubelet.Notify(kSocket, "no such plugin"));
  EXPECT_TRUE(kubelet.Notify(kSocket));
  EXPECT_THAT(agent.said(), HasSubstr("the kubelet does not register gpu.xsched.org: no such plugin"));
  EXPECT_THAT(agent.said(), HasSubstr("the kubelet has registered gpu.xsched.org"));
}

TEST_F(KubernetesClaims, publishes_the_slots_of_the_gpus_and_what_becomes_of_them) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const AgentProcess agent(Arguments({"--slots", "2"}), socket());
  auto has_devices = [](size_t count) {
    return [count](const json& slices) {
      return slices.size() == 1 && slices[0]["spec"]["devices"].size() == count;
    };
  };
  const json slices = api_.WaitForSlices(has_devices(2));
  ASSERT_FALSE(slices.is_null()) << agent.said();
  const json& spec = slices[0]["spec"];
  EXPECT_EQ(spec["driver"], "gpu.xsched.org");
  EXPECT_EQ(spec["nodeName"], kNodeName);
  EXPECT_EQ(spec["pool"], (json{{"name", kNodeName}, {"generation", 1}, {"resourceSliceCount", 1}}));
  EXPECT_EQ(spec["devices"][1]["name"], std::string(kSlotsOfA) + "-1-of-2");
  EXPECT_EQ(spec["devices"][1]["attributes"],
            (json{{"gpu", {{"string", kGpuA}}}, {"numaNode", {{"int", 1}}}}));
  EXPECT_EQ(spec["devices"][1]["capacity"], (json{{"share", {{"value", "50"}}}}));
  EXPECT_EQ(slices[0]["metadata"]["ownerReferences"][0]["uid"], kNodeUid);

  node_.AddCudaGpu("0000:5e:00.0", kGpuB, 1);
  EXPECT_FALSE(api_.WaitForSlices(has_devices(4)).is_null()) << agent.said();
  node_.TakeOffBus(kAddressA);
  const json left = api_.WaitForSlices(has_devices(2));
  ASSERT_FALSE(left.is_null()) << agent.said();
  EXPECT_EQ(left[0]["spec"]["pool"]["generation"], 3);
  EXPECT_EQ(left[0]["spec"]["devices"][0]["attributes"]["gpu"]["string"], kGpuB)
      << "the one that does not work is gone";
}

TEST_F(KubernetesClaims, publishes_again_what_a_kubelet_has_removed_that_starts) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  const AgentProcess agent(Arguments(), socket());
  auto are_there = [](const json& slices) { return slices.size() == 1; };
  ASSERT_FALSE(api_.WaitForSlices(are_there).is_null()) << agent.said();
  kubelet.WaitForPlugin(kSocket);
  EXPECT_TRUE(kubelet.Notify(kSocket));
  api_.RemoveSlices();
  EXPECT_FALSE(api_.WaitForSlices(are_there).is_null()) << agent.said();
}

TEST_F(KubernetesClaims, publishes_with_the_uid_that_the_node_has_after_it_was_registered_anew) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const AgentProcess agent(Arguments(), socket());
  auto are_of = [](const char* uid) {
    return [uid](const json& slices) {
      return slices.size() == 1 && slices[0]["metadata"]["ownerReferences"][0]["uid"] == uid;
    };
  };
  ASSERT_FALSE(api_.WaitForSlices(are_of(kNodeUid)).is_null()) << agent.said();
  const char* uid = "8f1c2f6e-0000-4000-8000-000000000002";
  api_.SetNodeUid(uid);
  api_.RemoveSlices();
  EXPECT_FALSE(api_.WaitForSlices(are_of(uid)).is_null()) << agent.said();
}

TEST_F(KubernetesClaims, by_capacity_publishes_each_gpu_once_and_says_so_if_the_cluster_cannot) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  api_.SetConsumableCapacity(false);
  auto are_there = [](const json& slices) { return slices.size() == 1; };
  {
    const AgentProcess agent(Arguments({"--by-capacity"}), socket());
    const json slices = api_.WaitForSlices(are_there);
    ASSERT_FALSE(slices.is_null()) << agent.said();
    const int lists = api_.Count("GET /apis/resource.k8s.io/v1/resourceslices");
    while (api_.Count("GET /apis/resource.k8s.io/v1/resourceslices") < lists + 3)
      SleepFor(std::chrono::milliseconds(20));
    EXPECT_EQ(api_.Count("PUT "), 0) << "what it does not keep is not sent again and again";
    EXPECT_THAT(agent.said(), HasSubstr("the feature DRAConsumableCapacity is missing"));
  }
  api_.SetConsumableCapacity(true);
  const AgentProcess agent(Arguments({"--by-capacity"}), socket());
  const json slices = api_.WaitForSlices([](const json& all) {
    return all.size() == 1 && all[0]["spec"]["devices"][0].contains("allowMultipleAllocations");
  });
  ASSERT_FALSE(slices.is_null()) << agent.said();
  EXPECT_EQ(slices[0]["spec"]["devices"].size(), 1u);
  EXPECT_EQ(slices[0]["spec"]["devices"][0]["name"], kSlotsOfA);
}

TEST_F(KubernetesClaims, answers_with_the_cdi_devices_of_the_gpu_and_of_the_claim) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train",
                ClaimJson(kUid, Slots(3), json::array({ParametersJson("FromClaim", {{"class", "batch"}})})));
  const AgentProcess agent(Arguments(), socket());
  const auto driver = kubelet.Driver(kSocket);
  const dra::NodePrepareResourceResponse answer = Prepare(*driver, kUid);
  EXPECT_EQ(answer.error(), "") << agent.said();
  ASSERT_EQ(answer.devices_size(), 3);
  const dra::Device& device = answer.devices(0);
  EXPECT_THAT(device.request_names(), ElementsAre("share"));
  EXPECT_EQ(device.pool_name(), kNodeName);
  EXPECT_EQ(device.device_name(), std::string(kSlotsOfA) + "-0-of-10");
  EXPECT_THAT(device.cdi_device_ids(),
              UnorderedElementsAre(std::string("nvidia.com/gpu=") + kGpuA,
                                   std::string("xsched.org/claim=") + kUid + "-share"));
  EXPECT_FALSE(device.has_share_id());
  EXPECT_THAT(answer.devices(2).cdi_device_ids(), IsEmpty());

  const json specification = json::parse(std::ifstream(SpecificationPath(kUid)));
  EXPECT_EQ(specification["kind"], "xsched.org/claim");
  ASSERT_EQ(specification["devices"].size(), 1u);
  EXPECT_EQ(specification["devices"][0]["name"], std::string(kUid) + "-share");
  const json& environment = specification["devices"][0]["containerEdits"]["env"];
  EXPECT_THAT(environment, Contains("XSCHED_AUTO_XQUEUE_UTILIZATION=30"));
  EXPECT_THAT(environment, Contains("XSCHED_AUTO_XQUEUE_WEIGHT=30"));
  EXPECT_THAT(environment, Contains("XSCHED_AUTO_XQUEUE_PRIORITY=-10"));
  EXPECT_THAT(specification["containerEdits"]["env"], Contains("XSCHED_SOCKET=/run/xsched/xserver.sock"));
}

TEST_F(KubernetesClaims, by_capacity_answers_with_the_id_of_the_share) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  json result = ResultJson("share", kSlotsOfA);
  result["shareID"] = "5a5a5a5a-0000-4000-8000-000000000001";
  result["consumedCapacity"] = {{"share", "40"}};
  api_.PutClaim("lab", "train", ClaimJson(kUid, json::array({result})));
  const AgentProcess agent(Arguments({"--by-capacity"}), socket());
  const dra::NodePrepareResourceResponse answer = Prepare(*kubelet.Driver(kSocket), kUid);
  ASSERT_EQ(answer.devices_size(), 1) << agent.said() << answer.error();
  EXPECT_EQ(answer.devices(0).share_id(), "5a5a5a5a-0000-4000-8000-000000000001");
  EXPECT_THAT(agent.said(), HasSubstr("claim lab/train: share 40 %"));
}

TEST_F(KubernetesClaims, prepares_a_claim_once_however_often_and_whoever_asks) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(3)));
  std::string first;
  {
    AgentProcess agent(Arguments(), socket());
    const auto driver = kubelet.Driver(kSocket);
    first = Prepare(*driver, kUid).SerializeAsString();
    EXPECT_EQ(Prepare(*driver, kUid).SerializeAsString(), first);
    EXPECT_EQ(api_.Count(kReadsClaim), 1);
    agent.Signal(SIGKILL);
    agent.WaitForExit();
  }
  fs::remove_all(run_ + "/cdi");
  AgentProcess next(Arguments(), socket());
  const auto driver = kubelet.Driver(kSocket);
  EXPECT_TRUE(fs::exists(SpecificationPath(kUid))) << "also after a start of the machine";
  api_.SetDown(true);
  EXPECT_EQ(Prepare(*driver, kUid).SerializeAsString(), first) << next.said();
  api_.SetDown(false);
}

TEST_F(KubernetesClaims, have_the_files_of_their_gpu_after_a_start_of_the_machine_that_numbers_them_anew) {
  const std::string slot = "gpu-0000000000001234-0-of-10";
  node_.AddHipGpu(kAddressA, 0x1234, 128);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train", ClaimJson(kUid, json::array({ResultJson("share", slot)})));
  auto file_of_gpu = [&] {
    const json specification = json::parse(std::ifstream(SpecificationPath(kUid)));
    return specification["devices"][0]["containerEdits"]["deviceNodes"][1]["path"];
  };
  {
    const AgentProcess agent(Arguments(), socket());
    ASSERT_EQ(Prepare(*kubelet.Driver(kSocket), kUid).error(), "") << agent.said();
    EXPECT_EQ(file_of_gpu(), "/dev/dri/renderD128");
  }
  node_.RemoveHipGpus();
  node_.AddHipGpu("0000:5e:00.0", 0x5678, 128);
  node_.AddHipGpu(kAddressA, 0x1234, 129);
  const AgentProcess agent(Arguments(), socket());
  EXPECT_EQ(Prepare(*kubelet.Driver(kSocket), kUid).devices_size(), 1) << agent.said();
  EXPECT_EQ(file_of_gpu(), "/dev/dri/renderD129");
}

TEST_F(KubernetesClaims, answer_and_log_any_name_as_one_line_of_utf_8) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  const AgentProcess agent(Arguments(), socket());
  const auto driver = kubelet.Driver(kSocket);
  auto refuse = [&](const std::string& parameter) {
    api_.PutClaim("lab", "train",
                  ClaimJson(kUid, Slots(1), json::array({ParametersJson("FromClaim", {{parameter, 1}})})));
    return Prepare(*driver, kUid).error();
  };
  std::string name;
  for (int i = 0; i < 14; ++i) name += "\u20ac";
  EXPECT_EQ(refuse(name), "there is no parameter " + name.substr(0, 39));
  EXPECT_EQ(refuse("a\nxsched-kubernetes: b"), "there is no parameter a?xsched-kubernetes: b");
  EXPECT_THAT(agent.said(), HasSubstr("there is no parameter a?xsched-kubernetes: b"));
}

TEST_F(KubernetesClaims, gives_back_what_was_prepared_and_nothing_is_left) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(3)));
  const AgentProcess agent(Arguments(), socket());
  const auto driver = kubelet.Driver(kSocket);
  Prepare(*driver, kUid);
  ASSERT_TRUE(fs::exists(SpecificationPath(kUid)));
  EXPECT_EQ(Unprepare(*driver, kUid), "");
  EXPECT_EQ(Unprepare(*driver, kUid), "") << "once more is no error";
  EXPECT_EQ(Unprepare(*driver, kOtherUid), "") << "nor is one that never was";
  EXPECT_FALSE(fs::exists(SpecificationPath(kUid)));
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(5)));
  EXPECT_EQ(Prepare(*driver, kUid).devices_size(), 5)
      << "the claim is prepared anew when it is allocated anew";
}

TEST_F(KubernetesClaims, that_have_gone_while_no_agent_was_there_are_given_back) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(1)));
  api_.PutClaim("lab", "serve", ClaimJson(kOtherUid, Slots(2)));
  {
    const AgentProcess agent(Arguments(), socket());
    const auto driver = kubelet.Driver(kSocket);
    Prepare(*driver, kUid);
    Prepare(*driver, kOtherUid, "serve");
  }
  api_.RemoveClaim("lab", "train");
  const AgentProcess agent(Arguments(), socket());
  kubelet.WaitForPlugin(kSocket);
  EXPECT_FALSE(fs::exists(SpecificationPath(kUid))) << agent.said();
  EXPECT_TRUE(fs::exists(SpecificationPath(kOtherUid))) << agent.said();
  EXPECT_THAT(agent.said(), HasSubstr("claim lab/train has gone"));
}

TEST_F(KubernetesClaims, stay_prepared_if_the_api_server_does_not_say_what_became_of_them) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(1)));
  {
    const AgentProcess agent(Arguments(), socket());
    Prepare(*kubelet.Driver(kSocket), kUid);
  }
  api_.SetDown(true);
  const AgentProcess agent(Arguments(), socket());
  EXPECT_EQ(Prepare(*kubelet.Driver(kSocket), kUid).devices_size(), 1) << agent.said();
  api_.SetDown(false);
}

TEST_F(KubernetesClaims, stay_prepared_if_the_api_server_knows_no_claims_at_all) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(1)));
  {
    const AgentProcess agent(Arguments(), socket());
    Prepare(*kubelet.Driver(kSocket), kUid);
  }
  api_.SetClaimsAreServed(false);
  const AgentProcess agent(Arguments(), socket());
  EXPECT_EQ(Prepare(*kubelet.Driver(kSocket), kUid).devices_size(), 1) << agent.said();
  EXPECT_TRUE(fs::exists(SpecificationPath(kUid))) << agent.said();
}

TEST_F(KubernetesClaims, that_cannot_be_prepared_are_refused_with_the_reason) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  const AgentProcess agent(Arguments(), socket());
  const auto driver = kubelet.Driver(kSocket);
  EXPECT_THAT(Prepare(*driver, kUid).error(),
              HasSubstr("answers 404 to GET /apis/resource.k8s.io/v1/namespaces/lab"));
  api_.PutClaim("lab", "train", ClaimJson(kOtherUid, Slots(3)));
  EXPECT_THAT(Prepare(*driver, kUid).error(), HasSubstr("there is another claim of this name"));
  api_.PutClaim("lab", "train", {{"metadata", {{"uid", kUid}}}});
  EXPECT_THAT(Prepare(*driver, kUid).error(), HasSubstr("nothing is allocated to it"));
  api_.PutClaim("lab", "train", ClaimJson(kUid, json::array()));
  EXPECT_THAT(Prepare(*driver, kUid).error(), HasSubstr("it has no device of gpu.xsched.org"));
  api_.PutClaim("lab", "train",
                ClaimJson(kUid, Slots(3), json::array({ParametersJson("FromClaim", {{"share", 31}})})));
  EXPECT_THAT(Prepare(*driver, kUid).error(),
              HasSubstr("a share of 31 % is more than the 30 % that are allocated"));
  EXPECT_THAT(agent.said(), HasSubstr("claim lab/train is not prepared: request share: a share of 31 %"));
  for (const char* name : {"", "../nodes", "a/b", "a?b", "A"})
    EXPECT_THAT(Prepare(*driver, kUid, name).error(), HasSubstr("the kubelet names no claim")) << name;
  EXPECT_THAT(Prepare(*driver, "../../etc/x").error(), HasSubstr("the kubelet names no claim"));
  EXPECT_FALSE(fs::exists(SpecificationPath(kUid)));
  api_.PutClaim("lab", "train", ClaimJson(kUid, Slots(3)));
  EXPECT_EQ(Prepare(*driver, kUid).devices_size(), 3) << "and goes on";
}

TEST_F(KubernetesClaims, makes_its_sockets_again_when_somebody_removes_them) {
  const FakePluginWatcher kubelet(home_);
  const AgentProcess agent(Arguments(), socket());
  kubelet.WaitForPlugin(kSocket);
  fs::remove(home_ + "/plugins_registry/" + kSocket);
  fs::remove(home_ + "/plugins/gpu.xsched.org/dra.sock");
  EXPECT_EQ(kubelet.WaitForPlugin(kSocket).name(), "gpu.xsched.org") << agent.said();
  EXPECT_EQ(Unprepare(*kubelet.Driver(kSocket), kUid), "") << agent.said();
}

TEST_F(KubernetesClaims, waits_for_the_kubelets_folder_and_the_api_server) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  api_.SetDown(true);
  const AgentProcess agent(Arguments(), socket());
  while (agent.said().find("ResourceSlices are not published") == std::string::npos)
    SleepFor(std::chrono::milliseconds(20));
  EXPECT_THAT(agent.said(), HasSubstr("answers 503 to GET /apis/resource.k8s.io/v1/resourceslices"));
  EXPECT_THAT(agent.said(), HasSubstr("waiting for the kubelet: there is no folder " + home_));
  EXPECT_FALSE(fs::exists(home_)) << "it is the kubelet's to make";
  fs::create_directories(home_);
  while (agent.said().find("cannot make the socket " + home_ + "/plugins_registry/" + kSocket) ==
         std::string::npos)
    SleepFor(std::chrono::milliseconds(20));
  std::istringstream said(agent.said());
  for (std::string line; std::getline(said, line);)
    EXPECT_THAT(line, StartsWith("xsched")) << "a line of a library";
  const FakePluginWatcher kubelet(home_);
  EXPECT_EQ(kubelet.WaitForPlugin(kSocket).type(), "DRAPlugin") << agent.said();
  api_.SetDown(false);
  EXPECT_FALSE(api_.WaitForSlices([](const json& slices) { return slices.size() == 1; }).is_null())
      << agent.said();
}

TEST_F(KubernetesClaims, ends_with_a_message_beside_another_one_or_without_an_api_server) {
  const FakePluginWatcher kubelet(home_);
  const AgentProcess agent(Arguments(), socket());
  kubelet.WaitForPlugin(kSocket);
  AgentProcess second(Arguments(), socket());
  EXPECT_EQ(second.WaitForExit(), 1);
  EXPECT_THAT(second.said(),
              HasSubstr("another agent serves at " + home_ + "/plugins/gpu.xsched.org/dra.sock"));
  AgentProcess third({"claims", "--node", kNodeName}, socket());
  EXPECT_EQ(third.WaitForExit(), 2);
  EXPECT_THAT(third.said(), HasSubstr("--api-server is missing"));
}

TEST_F(KubernetesClaims, refuses_an_empty_value_of_an_option) {
  for (const char* option : {"--account", "--kubelet-home", "--cdi-folder", "--dev", "--api-server"}) {
    AgentProcess agent({"claims", "--node", kNodeName, option, ""}, socket());
    EXPECT_EQ(agent.WaitForExit(), 2) << option;
    EXPECT_THAT(agent.said(), HasSubstr(std::string(option) + ": it must not be empty"));
  }
}

TEST_F(KubernetesClaims, ends_in_order_and_takes_its_sockets_with_it) {
  node_.AddCudaGpu(kAddressA, kGpuA, 0);
  const FakePluginWatcher kubelet(home_);
  AgentProcess agent(Arguments(), socket());
  kubelet.WaitForPlugin(kSocket);
  ASSERT_FALSE(api_.WaitForSlices([](const json& slices) { return slices.size() == 1; }).is_null())
      << agent.said();
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.WaitForExit(), 0) << agent.said();
  EXPECT_FALSE(fs::exists(home_ + "/plugins_registry/" + kSocket));
  EXPECT_FALSE(fs::exists(home_ + "/plugins/gpu.xsched.org/dra.sock"));
  EXPECT_EQ(api_.Count("DELETE "), 0) << "the kubelet removes the slices if no agent comes back";
}

}  // namespace
}  // namespace xsched::kubernetes
