#include "kubernetes/dra_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/testing/claim_json.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;
using testing::ClaimJson;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ParametersJson;
using testing::ResultJson;

constexpr const char* kUid = "c1a1a1a1-0000-4000-8000-000000000001";
constexpr Division kTenSlots{};
constexpr Division kByCapacity{.by_capacity = true};

std::vector<Gpu> Gpus() {
  Gpu cuda;
  cuda.device.id = "GPU-a";
  cuda.device.cdi = "nvidia.com/gpu=GPU-a";
  cuda.device.files = {"/dev/nvidia0"};
  Gpu other = cuda;
  other.device.id = "GPU-b";
  other.device.cdi = "nvidia.com/gpu=GPU-b";
  Gpu files;
  files.device.id = "GPU-c";
  files.device.files = {"/dev/kfd", "/dev/dri/renderD128"};
  return {cuda, other, files};
}

Result<PreparedClaim> Prepared(const json& claim, const Division& division = kTenSlots) {
  Result<Claim> read = ReadClaim(claim.dump());
  if (!read) return read.error();
  return PrepareClaim(*read, "lab/claim", Gpus(), division);
}
PreparedClaim Granted(const json& claim, const Division& division = kTenSlots) {
  Result<PreparedClaim> prepared = Prepared(claim, division);
  EXPECT_TRUE(prepared) << prepared.error().text();
  return prepared ? *prepared : PreparedClaim();
}
std::string Refusal(const json& claim, const Division& division = kTenSlots) {
  Result<PreparedClaim> prepared = Prepared(claim, division);
  return prepared ? "" : prepared.error().text();
}
// `count` slots of the GPU.
json Slots(const std::string& gpu, int count, const std::string& request = "share") {
  json results = json::array();
  for (int slot = 0; slot < count; ++slot)
    results.push_back(ResultJson(request, gpu + "-" + std::to_string(slot) + "-of-10"));
  return results;
}
json operator+(json a, const json& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(KubernetesDraClaim, several_slots_of_a_gpu_are_their_sum) {
  const PreparedClaim claim = Granted(ClaimJson(kUid, Slots("gpu-a", 3)));
  EXPECT_THAT(claim.requests, ElementsAre(RequestGrant{"share", 30, {}, {}}));
  ASSERT_EQ(claim.devices.size(), 3u);
  EXPECT_EQ(claim.devices[0],
            (PreparedDevice{"share",
                            "node-1.example",
                            "gpu-a-0-of-10",
                            "",
                            {std::string("xsched.org/claim=") + kUid + "-share", "nvidia.com/gpu=GPU-a"}}));
  EXPECT_EQ(claim.devices[2], (PreparedDevice{"share", "node-1.example", "gpu-a-2-of-10", "", {}}))
      << "a container of the request has the CDI devices of all its devices, each once";
}

TEST(KubernetesDraClaim, all_slots_of_a_gpu_are_all_of_it_however_many_there_are) {
  json results = json::array();
  for (int slot = 0; slot < 3; ++slot)
    results.push_back(ResultJson("r", "gpu-a-" + std::to_string(slot) + "-of-3"));
  EXPECT_EQ(Granted(ClaimJson(kUid, results), {.slots = 3}).requests[0].percent, 100);
  results.erase(0);
  EXPECT_EQ(Granted(ClaimJson(kUid, results), {.slots = 3}).requests[0].percent, 66);
}

TEST(KubernetesDraClaim, by_capacity_it_has_what_it_consumes_with_the_id_of_its_share) {
  json result = ResultJson("share", "gpu-a");
  result["shareID"] = "5a5a5a5a-0000-4000-8000-000000000001";
  result["consumedCapacity"] = {{"share", "40"}};
  const PreparedClaim claim = Granted(ClaimJson(kUid, json::array({result})), kByCapacity);
  EXPECT_EQ(claim.requests[0].percent, 40);
  EXPECT_EQ(claim.devices[0].share_id, "5a5a5a5a-0000-4000-8000-000000000001");
  result["consumedCapacity"] = {{"gpu.xsched.org/share", "7"}};
  EXPECT_EQ(Granted(ClaimJson(kUid, json::array({result})), kByCapacity).requests[0].percent, 7);
  result.erase("consumedCapacity");
  EXPECT_EQ(Granted(ClaimJson(kUid, json::array({result})), kByCapacity).requests[0].percent, 100)
      << "the whole device is its own";
}

TEST(KubernetesDraClaim, a_share_that_is_no_percent_is_refused) {
  for (const char* share : {"0", "101", "-1", "1.5", "40m", "1k", "", "99999999999999999999"}) {
    json result = ResultJson("share", "gpu-a");
    result["consumedCapacity"] = {{"share", share}};
    EXPECT_THAT(Refusal(ClaimJson(kUid, json::array({result})), kByCapacity),
                HasSubstr("is no number from 1 to 100"))
        << share;
  }
}

TEST(KubernetesDraClaim, each_request_has_a_cdi_device_of_its_own) {
  const PreparedClaim claim =
      Granted(ClaimJson(kUid, Slots("gpu-a", 4, "serve") + Slots("gpu-b", 1, "side")));
  EXPECT_THAT(claim.requests,
              ElementsAre(RequestGrant{"serve", 40, {}, {}}, RequestGrant{"side", 10, {}, {}}));
  EXPECT_EQ(claim.devices[4].cdi.at(0), std::string("xsched.org/claim=") + kUid + "-side");
}

TEST(KubernetesDraClaim, a_subrequest_belongs_to_its_request) {
  const PreparedClaim claim = Granted(ClaimJson(kUid, Slots("gpu-a", 2, "share/small")));
  EXPECT_EQ(claim.requests[0].request, "share");
  EXPECT_EQ(claim.devices[1].request, "share");
}

TEST(KubernetesDraClaim, files_of_a_gpu_without_a_vendors_cdi_device_are_in_ours) {
  const PreparedClaim claim = Granted(ClaimJson(kUid, Slots("gpu-c", 2)));
  EXPECT_THAT(claim.requests[0].files, ElementsAre("/dev/kfd", "/dev/dri/renderD128"));
  EXPECT_EQ(claim.devices[0].cdi.size(), 1u);
}

TEST(KubernetesDraClaim, several_gpus_have_the_same_share_each) {
  const PreparedClaim claim = Granted(ClaimJson(kUid, Slots("gpu-a", 10) + Slots("gpu-b", 10)));
  EXPECT_EQ(claim.requests[0].percent, 100);
  EXPECT_THAT(claim.devices[10].cdi, ElementsAre("nvidia.com/gpu=GPU-b"));
  EXPECT_THAT(
      Refusal(ClaimJson(kUid, Slots("gpu-a", 3) + Slots("gpu-b", 1))),
      HasSubstr(
          "request share has 30 % of GPU-a, 10 % of GPU-b. It must have the same of each: a constraint with "
          "matchAttribute gpu.xsched.org/gpu keeps it on one GPU"));
}

TEST(KubernetesDraClaim, devices_of_other_drivers_are_not_ours) {
  json foreign = ResultJson("net", "nic-0");
  foreign["driver"] = "net.example.com";
  EXPECT_EQ(Granted(ClaimJson(kUid, json::array({foreign}) + Slots("gpu-a", 1))).devices.size(), 1u);
}

TEST(KubernetesDraClaim, a_device_that_is_not_offered_any_more_is_refused) {
  EXPECT_THAT(Refusal(ClaimJson(kUid, json::array({ResultJson("share", "gpu-a-0-of-4")}))),
              HasSubstr("offers no device gpu-a-0-of-4"))
      << "it was allocated when a GPU had four slots";
  EXPECT_THAT(Refusal(ClaimJson(kUid, json::array({ResultJson("share", "gpu-a")}))),
              HasSubstr("offers no device gpu-a:"));
}

TEST(KubernetesDraClaim, access_for_administrators_is_refused) {
  json result = ResultJson("watch", "gpu-a-0-of-10");
  result["adminAccess"] = true;
  EXPECT_THAT(Refusal(ClaimJson(kUid, json::array({result}))), HasSubstr("is not offered"));
}

TEST(KubernetesDraClaim, parameters_say_its_priority_or_class_and_a_smaller_share) {
  auto grant = [](const json& parameters) {
    return Granted(ClaimJson(kUid, Slots("gpu-a", 4), json::array({ParametersJson("FromClaim", parameters)})))
        .requests.at(0);
  };
  EXPECT_EQ(grant({{"priority", -255}}).priority, -255);
  EXPECT_EQ(grant({{"priority", 255}}).priority, 255);
  EXPECT_EQ(grant({{"class", "urgent"}}).priority, 10);
  EXPECT_EQ(grant({{"class", "normal"}}).priority, 0);
  EXPECT_EQ(grant({{"class", "batch"}}).priority, -10);
  EXPECT_EQ(grant({{"share", 15}}).percent, 15);
  EXPECT_EQ(grant({{"share", 40}}).percent, 40);
  EXPECT_EQ(grant(json::object()), (RequestGrant{"share", 40, {}, {}}));
}

TEST(KubernetesDraClaim, what_the_claim_says_replaces_what_the_class_says) {
  const json from_claim = ParametersJson("FromClaim", {{"class", "batch"}});
  const json from_class = ParametersJson("FromClass", {{"priority", 3}, {"share", 20}});
  const RequestGrant grant =
      Granted(ClaimJson(kUid, Slots("gpu-a", 4), {from_claim, from_class})).requests[0];
  EXPECT_EQ(grant.priority, -10) << "in whatever order they are listed";
  EXPECT_EQ(grant.percent, 20) << "and the rest stays";
}

TEST(KubernetesDraClaim, parameters_count_for_the_requests_that_they_name_and_for_our_driver) {
  json batch = ParametersJson("FromClaim", {{"class", "batch"}});
  batch["requests"] = json::array({"side"});
  json small = ParametersJson("FromClaim", {{"share", 5}});
  small["requests"] = json::array({"serve/small"});
  json foreign = ParametersJson("FromClaim", {{"anything", true}});
  foreign["opaque"]["driver"] = "gpu.example.com";
  const PreparedClaim claim = Granted(
      ClaimJson(kUid, Slots("gpu-a", 4, "serve/small") + Slots("gpu-b", 1, "side"), {batch, small, foreign}));
  EXPECT_THAT(claim.requests,
              ElementsAre(RequestGrant{"serve", 5, {}, {}}, RequestGrant{"side", 10, -10, {}}));
}

TEST(KubernetesDraClaim, parameters_that_are_not_understood_are_named_and_refused) {
  auto refusal = [](const json& parameters) {
    return Refusal(
        ClaimJson(kUid, Slots("gpu-a", 4), json::array({ParametersJson("FromClaim", parameters)})));
  };
  EXPECT_THAT(refusal({{"share", 41}}),
              HasSubstr("a share of 41 % is more than the 40 % that are allocated"));
  EXPECT_THAT(refusal({{"share", 0}}), HasSubstr("share \"0\" is no number from 1 to 100"));
  EXPECT_THAT(refusal({{"share", "20"}}), HasSubstr("is no number from 1 to 100"));
  EXPECT_THAT(refusal({{"priority", 256}}), HasSubstr("priority \"256\" is no number from -255 to 255"));
  EXPECT_THAT(refusal({{"priority", 1e300}}), HasSubstr("is no number from -255 to 255"));
  EXPECT_THAT(refusal({{"class", "gold"}}), HasSubstr("class \"gold\" is none of urgent, normal and batch"));
  EXPECT_THAT(refusal({{"class", 3}}), HasSubstr("is none of urgent, normal and batch"));
  EXPECT_THAT(refusal({{"class", "batch"}, {"priority", 3}}), HasSubstr("which are the same thing"));
  EXPECT_THAT(refusal({{"weight", 3}}), HasSubstr("there is no parameter weight"));
  EXPECT_THAT(refusal({{"apiVersion", "gpu.xsched.org/v2"}}),
              HasSubstr("are no ShareParameters of gpu.xsched.org/v1"));
  EXPECT_THAT(refusal({{"kind", "Other"}}), HasSubstr("are no ShareParameters of gpu.xsched.org/v1"));
}

TEST(KubernetesDraClaim, what_is_quoted_ends_with_a_whole_character) {
  const std::string euro = "\u20ac";
  std::string name;
  for (int i = 0; i < 14; ++i) name += euro;
  const std::string kept = name.substr(0, 13 * euro.size());
  auto refusal = [](const json& parameters) {
    return Refusal(
        ClaimJson(kUid, Slots("gpu-a", 4), json::array({ParametersJson("FromClaim", parameters)})));
  };
  EXPECT_EQ(refusal({{name, 1}}), "there is no parameter " + kept);
  EXPECT_EQ(refusal({{"class", name}}), "class \"" + kept + "\" is none of urgent, normal and batch");
  json result = ResultJson("share", "gpu-a");
  result["consumedCapacity"] = {{"share", name}};
  EXPECT_EQ(Refusal(ClaimJson(kUid, json::array({result})), kByCapacity),
            "a share of \"" + kept + "\" is no number from 1 to 100");
}

TEST(KubernetesDraClaim, without_an_allocation_it_is_none_to_prepare) {
  Result<Claim> claim = ReadClaim(json{{"metadata", {{"uid", kUid}}}, {"status", json::object()}}.dump());
  ASSERT_TRUE(claim);
  EXPECT_FALSE(claim->is_allocated);
}

TEST(KubernetesDraClaim, whatever_the_answer_is_it_is_read_or_refused) {
  for (const char* text :
       {"", "{", "[]", "null", "3", R"({"metadata": {"uid": 3}})", R"({"metadata": []})", "\xff"})
    EXPECT_FALSE(ReadClaim(text)) << text;
  for (const char* allocation :
       {R"({"devices": 3})", R"({"devices": {"results": 3}})", R"({"devices": {"results": [3, null, {}]}})",
        R"({"devices": {"results": [], "config": "x"}})"}) {
    Result<Claim> claim = ReadClaim(
        json{{"metadata", {{"uid", kUid}}}, {"status", {{"allocation", json::parse(allocation)}}}}.dump());
    ASSERT_TRUE(claim) << allocation;
    EXPECT_TRUE(claim->devices.empty());
  }
}

}  // namespace
}  // namespace xsched::kubernetes
