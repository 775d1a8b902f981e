#include "kubernetes/prepared_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/exit_codes.h"
#include "kubernetes/testing/node_folder.h"

namespace xsched::kubernetes {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const PreparedClaim kClaim = {
    .name = "lab/claim",
    .devices = {{"share", "node-1", "gpu-a-0-of-10", "", {"xsched.org/claim=uid-a-share"}},
                {"share", "node-1", "gpu-a-1-of-10", "id", {}}},
    .requests = {{"share", 20, -10, {"/dev/kfd"}}, {"side", 5, {}, {}}},
};

class KubernetesPreparedClaims : public ::testing::Test {
 protected:
  std::vector<std::string> Files() const { return FilesIn(cdi_); }
  static std::vector<std::string> FilesIn(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  json Specification(const std::string& uid) const {
    return json::parse(std::ifstream(cdi_ + "/xsched-claim-" + uid + ".json"));
  }
  static cli::CdiSpecification Installed(const std::string& library = "/opt/xsched/lib/libshim.so") {
    return {.kind = "xsched.org/claim",
            .devices = {},
            .route = "layer",
            .shims = {},
            .libraries = {library},
            .socket = "/run/xsched/s"};
  }

  static std::vector<Gpu> Gpus(const std::vector<std::string>& files = {"/dev/kfd"}) {
    Gpu gpu;
    gpu.device.id = "GPU-a";
    gpu.device.files = files;
    return {gpu};
  }
  std::vector<std::string> DeviceNames(const std::string& uid) const {
    std::vector<std::string> names;
    const json specification = Specification(uid);
    for (const json& device : specification["devices"]) names.push_back(device["name"]);
    return names;
  }

  testing::NodeFolder folder_;
  const std::string checkpoint_ = folder_.path() + "/plugins/checkpoint.json";
  const std::string cdi_ = folder_.path() + "/cdi";
};

TEST_F(KubernetesPreparedClaims, are_the_same_after_a_restart) {
  {
    PreparedClaims claims(checkpoint_, cdi_);
    claims.WriteSpecifications(Installed(), Gpus());
    ASSERT_TRUE(claims.Add("uid-a", kClaim));
    EXPECT_EQ(claims.Find("uid-a"), kClaim);
  }
  const PreparedClaims claims(checkpoint_, cdi_);
  EXPECT_EQ(claims.Find("uid-a"), kClaim);
  EXPECT_EQ(claims.Find("uid-b"), std::nullopt);
  EXPECT_THAT(claims.uids(), ElementsAre("uid-a"));
}

TEST_F(KubernetesPreparedClaims, have_a_specification_with_a_device_for_each_request) {
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  ASSERT_TRUE(claims.Add("uid-a", kClaim));
  const json specification = Specification("uid-a");
  EXPECT_EQ(specification["kind"], "xsched.org/claim");
  ASSERT_EQ(specification["devices"].size(), 2u);
  const json& share = specification["devices"][0];
  EXPECT_EQ(share["name"], "uid-a-share");
  EXPECT_THAT(share["containerEdits"]["env"], Contains("XSCHED_AUTO_XQUEUE_UTILIZATION=20"));
  EXPECT_THAT(share["containerEdits"]["env"], Contains("XSCHED_AUTO_XQUEUE_PRIORITY=-10"));
  EXPECT_EQ(share["containerEdits"]["deviceNodes"],
            json::parse(R"([{"path": "/dev/kfd", "permissions": "rw"}])"));
  const json& side = specification["devices"][1];
  EXPECT_THAT(side["containerEdits"]["env"], Contains("XSCHED_AUTO_XQUEUE_WEIGHT=5"));
  EXPECT_THAT(side["containerEdits"]["env"], Not(Contains(StartsWith("XSCHED_AUTO_XQUEUE_PRIORITY"))));
  EXPECT_FALSE(side["containerEdits"].contains("deviceNodes"));
}

TEST_F(KubernetesPreparedClaims, give_programs_no_priority_that_needs_a_right) {
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  PreparedClaim urgent = kClaim;
  urgent.requests[0].priority = 10;
  ASSERT_TRUE(claims.Add("uid-a", urgent));
  EXPECT_THAT(Specification("uid-a")["devices"][0]["containerEdits"]["env"],
              Not(Contains(StartsWith("XSCHED_AUTO_XQUEUE_PRIORITY"))));
}

TEST_F(KubernetesPreparedClaims, that_are_given_back_leave_nothing) {
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  ASSERT_TRUE(claims.Add("uid-a", kClaim));
  ASSERT_TRUE(claims.Remove("uid-a"));
  EXPECT_TRUE(claims.Remove("uid-a")) << "once more is no error";
  EXPECT_EQ(claims.Find("uid-a"), std::nullopt);
  EXPECT_TRUE(Files().empty());
  EXPECT_TRUE(PreparedClaims(checkpoint_, cdi_).uids().empty());
}

TEST_F(KubernetesPreparedClaims,
       have_their_specifications_again_after_a_start_of_the_machine_with_the_libraries_of_now) {
  {
    PreparedClaims claims(checkpoint_, cdi_);
    claims.WriteSpecifications(Installed(), Gpus());
    ASSERT_TRUE(claims.Add("uid-a", kClaim));
  }
  fs::remove_all(cdi_);
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed("/opt/new/libshim.so"), Gpus());
  EXPECT_EQ(Specification("uid-a")["containerEdits"]["mounts"][1]["hostPath"], "/opt/new/libshim.so");
}

TEST_F(KubernetesPreparedClaims, have_the_files_that_their_gpu_has_now) {
  {
    PreparedClaims claims(checkpoint_, cdi_);
    claims.WriteSpecifications(Installed(), Gpus({"/dev/kfd", "/dev/dri/renderD128"}));
    ASSERT_TRUE(claims.Add("uid-a", kClaim));
  }
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus({"/dev/kfd", "/dev/dri/renderD129"}));
  const json nodes = Specification("uid-a")["devices"][0]["containerEdits"]["deviceNodes"];
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1]["path"], "/dev/dri/renderD129");
  EXPECT_EQ(claims.Find("uid-a"), kClaim) << "the kubelet gets the same answer";
}

TEST_F(KubernetesPreparedClaims, have_no_device_of_a_request_while_its_gpu_is_not_there) {
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  ASSERT_TRUE(claims.Add("uid-a", kClaim));
  std::vector<Gpu> broken = Gpus();
  broken[0].works = false;
  for (const std::vector<Gpu>& gpus : {std::vector<Gpu>(), broken}) {
    claims.WriteSpecifications(Installed(), gpus);
    EXPECT_THAT(DeviceNames("uid-a"), ElementsAre("uid-a-side"));
    claims.WriteSpecifications(Installed(), Gpus());
    EXPECT_THAT(DeviceNames("uid-a"), ElementsAre("uid-a-share", "uid-a-side"));
  }
}

TEST_F(KubernetesPreparedClaims, have_no_specification_without_any_device) {
  PreparedClaim claim = kClaim;
  claim.requests.pop_back();
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  ASSERT_TRUE(claims.Add("uid-a", claim));
  ASSERT_FALSE(Files().empty());
  claims.WriteSpecifications(Installed(), {});
  EXPECT_TRUE(Files().empty()) << "engines refuse one";
}

TEST_F(KubernetesPreparedClaims, remove_specifications_of_no_claim_and_leave_those_of_others) {
  fs::create_directories(cdi_);
  for (const char* name : {"xsched-claim-uid-x.json", "xsched-share.json", "nvidia.yaml"})
    std::ofstream(cdi_ + "/" + name) << "{}";
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  EXPECT_THAT(Files(), ElementsAre("nvidia.yaml", "xsched-share.json"));
}

TEST_F(KubernetesPreparedClaims, remove_what_a_killed_agent_has_left_unfinished) {
  const std::string plugin = fs::path(checkpoint_).parent_path();
  fs::create_directories(cdi_);
  fs::create_directories(plugin);
  {
    PreparedClaims claims(checkpoint_, cdi_);
    claims.WriteSpecifications(Installed(), Gpus());
    ASSERT_TRUE(claims.Add("uid-a", kClaim));
  }
  for (const char* name :
       {"xsched-claim-uid-a.json.new-abcdef", "xsched-claim-uid-x.json.new-abcdef", "a.json.new-abcdef"})
    std::ofstream(cdi_ + "/" + name) << "{";
  for (const char* name : {"/checkpoint.json.new-abcdef", "/checkpoint.json.backup", "/dra.sock"})
    std::ofstream(plugin + name) << "{";
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  EXPECT_THAT(FilesIn(cdi_), ElementsAre("a.json.new-abcdef", "xsched-claim-uid-a.json"));
  EXPECT_THAT(FilesIn(plugin), ElementsAre("checkpoint.json", "checkpoint.json.backup", "dra.sock"))
      << "what may be an administrator's stays";
}

TEST_F(KubernetesPreparedClaims, that_cannot_be_written_are_not_prepared) {
  PreparedClaims claims(checkpoint_, cdi_);
  claims.WriteSpecifications(Installed(), Gpus());
  std::ofstream(cdi_ + "x") << "";
  fs::remove_all(cdi_);
  fs::rename(cdi_ + "x", cdi_);  // a file, where the folder should be
  EXPECT_FALSE(claims.Add("uid-a", kClaim));
  EXPECT_EQ(claims.Find("uid-a"), std::nullopt);
  EXPECT_TRUE(PreparedClaims(checkpoint_, cdi_).uids().empty());
}

TEST_F(KubernetesPreparedClaims, a_checkpoint_that_cannot_be_read_is_no_empty_one) {
  fs::create_directories(fs::path(checkpoint_).parent_path());
  for (const char* text : {"", "{", "[]", R"({"version": 2, "claims": {}})", R"({"version": 1})",
                           R"({"version": 1, "claims": {"a": {}}})"}) {
    std::ofstream(checkpoint_) << text;
    EXPECT_THAT([&] { const PreparedClaims claims(checkpoint_, cdi_); },
                ThrowsMessage<cli::CommandError>(StartsWith("cannot read " + checkpoint_)))
        << text;
  }
}

}  // namespace
}  // namespace xsched::kubernetes
