#include "kubernetes/pods.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace xsched::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kNoLimit = 255;

Pods Read(const std::string& text) {
  Result<Pods> pods = ReadPods(text);
  EXPECT_TRUE(pods) << pods.error().text();
  return pods ? *pods : Pods();
}

std::optional<int> Priority(const Pod& pod, const ClassPriorities& classes = {}, int most = kNoLimit) {
  return PriorityOf(pod, classes, most).priority;
}

TEST(KubernetesPods, a_list_of_the_api_server_says_who_each_pod_is_and_what_it_asks_for) {
  const Pods pods = Read(R"({"kind": "PodList", "items": [
    {"metadata": {"uid": "u1", "namespace": "lab", "name": "serve", "annotations": {"xsched.org/priority": "7", "other": "x"}},
     "spec": {"priorityClassName": "gpu-urgent", "containers": [{"name": "a"}]}},
    {"metadata": {"uid": "u2", "namespace": "lab", "name": "train"},
     "spec": {"containers": [{"name": "a"}, {"name": "b", "env": [{"name": "PATH", "value": "/"},
                                                                 {"name": "CUDA_TASK_PRIORITY", "value": "1"}]}]}}]})");
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods.at("u1").name, "lab/serve");
  EXPECT_EQ(pods.at("u1").priority_class, "gpu-urgent");
  EXPECT_EQ(pods.at("u1").asked, "7");
  EXPECT_EQ(pods.at("u1").hami_priority, "");
  EXPECT_EQ(pods.at("u2").hami_priority, "1");
  EXPECT_THAT(Read(R"({"items": null})"), IsEmpty());
}

TEST(KubernetesPods, what_is_no_list_is_an_error_and_what_is_no_pod_is_left_out) {
  for (const char* text : {"", "{", "[]", "null", "7", R"({"kind": "Status", "code": 403})",
                           R"({"items": 7})", R"({"items": {}})", "\xff"})
    EXPECT_FALSE(ReadPods(text)) << text;
  const Pods pods = Read(
      R"({"items": [7, null, [], {}, {"metadata": 3}, {"metadata": {"uid": 3}}, {"metadata": {"uid": ""}},
    {"metadata": {"uid": "u", "annotations": [1]}, "spec": {"priorityClassName": {}, "containers": {"env": "x"}}},
    {"metadata": {"uid": "v", "annotations": {"xsched.org/priority": 7}}, "spec": {"containers": [{"env": [1, {"name": "CUDA_TASK_PRIORITY"}]}]}}]})");
  ASSERT_EQ(pods.size(), 2u);
  for (const char* uid : {"u", "v"}) EXPECT_EQ(Priority(pods.at(uid)), std::nullopt) << uid;
}

// Whatever a server that is none sends.
TEST(KubernetesPods, a_list_with_bytes_changed_does_no_harm) {
  const std::string list =
      R"({"items": [{"metadata": {"uid": "u1", "namespace": "a", "name": "b", "annotations":
    {"xsched.org/priority": "7"}}, "spec": {"priorityClassName": "c", "containers": [{"env": [{"name": "CUDA_TASK_PRIORITY", "value": "0"}]}]}}]})";
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = list;
    for (unsigned changes = random() % 4; changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random());
    Result<Pods> pods = ReadPods(text);
    if (!pods) continue;
    for (const auto& [uid, pod] : *pods) PriorityOf(pod, {{"c", pod.asked}}, kNoLimit);
  }
}

TEST(KubernetesPods, one_of_which_nobody_says_anything_has_no_priority) {
  EXPECT_EQ(Priority({}), std::nullopt);
  EXPECT_EQ(Priority({.priority_class = "system-node-critical"}, {{"gpu-urgent", "10"}}), std::nullopt);
}

TEST(KubernetesPods, a_priority_class_gives_a_priority_and_the_right_to_it) {
  const ClassPriorities classes = {{"gpu-urgent", "10"}, {"gpu-batch", "-20"}};
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent"}, classes), 10);
  EXPECT_EQ(Priority({.priority_class = "gpu-batch"}, classes), -20);
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent", .asked = "7"}, classes), 7);
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent", .asked = "11"}, classes), 10);
  EXPECT_EQ(Priority({.priority_class = "gpu-batch", .asked = "0"}, classes), -20);
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent"}, classes, 5), 5);
}

TEST(KubernetesPods, a_pod_without_a_right_lowers_itself_and_does_not_raise_itself) {
  EXPECT_EQ(Priority({.asked = "-5"}), -5);
  EXPECT_EQ(Priority({.asked = "255"}), 0);
  EXPECT_THAT(
      PriorityOf({.priority_class = "other", .asked = "255"}, {}, kNoLimit).problem,
      HasSubstr(
          "priority 255 is lowered to 0, the highest that its PriorityClass other and --max-priority allow"));
  EXPECT_EQ(Priority({.hami_priority = "0"}), 0);
}

TEST(KubernetesPods, the_highest_priority_of_its_programs_is_that_of_its_class) {
  const ClassPriorities classes = {{"gpu-urgent", "10"}, {"gpu-batch", "-20"}};
  auto highest = [&](const Pod& pod, int most) { return PriorityOf(pod, classes, most).highest; };
  EXPECT_EQ(highest({}, kNoLimit), 0);
  EXPECT_EQ(highest({}, -5), -5);
  EXPECT_EQ(highest({.priority_class = "gpu-urgent", .asked = "3"}, kNoLimit), 10);
  EXPECT_EQ(highest({.priority_class = "gpu-urgent"}, 7), 7);
  EXPECT_EQ(highest({.priority_class = "gpu-batch"}, kNoLimit), -20);
}

TEST(KubernetesPods, hamis_variable_is_the_class_urgent_or_batch_unless_the_annotation_says_otherwise) {
  const ClassPriorities classes = {{"gpu-urgent", "50"}};
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent", .hami_priority = "0"}, classes), 10);
  EXPECT_EQ(Priority({.hami_priority = "1"}), -10);
  EXPECT_EQ(Priority({.asked = "-3", .hami_priority = "1"}), -3);
}

TEST(KubernetesPods, the_claims_of_a_pod_are_those_that_it_names_and_those_that_were_made_for_it) {
  const Pods pods = Read(R"({"items": [
    {"metadata": {"uid": "u", "namespace": "lab", "name": "train"},
     "spec": {"resourceClaims": [{"name": "a", "resourceClaimName": "shared"},
                                 {"name": "b", "resourceClaimTemplateName": "template"}]},
     "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "train-b-x7k2p"}, {"name": "c"}, 3]}},
    {"metadata": {"uid": "v"}, "spec": {"resourceClaims": 3}, "status": []}]})");
  EXPECT_THAT(pods.at("u").claims, ElementsAre("shared", "train-b-x7k2p"));
  EXPECT_THAT(pods.at("v").claims, IsEmpty());
}

TEST(KubernetesPods, a_mirror_pod_names_the_uid_of_its_static_pod) {
  const Pods pods = Read(R"({"items": [
    {"metadata": {"uid": "u", "annotations": {"kubernetes.io/config.mirror": "hash"}}},
    {"metadata": {"uid": "v", "annotations": {"kubernetes.io/config.hash": "hash"}}},
    {"metadata": {"uid": "w", "annotations": {"kubernetes.io/config.mirror": 3}}}]})");
  EXPECT_EQ(pods.at("u").mirrored, "hash");
  EXPECT_EQ(pods.at("v").mirrored, "");
  EXPECT_EQ(pods.at("w").mirrored, "");
  EXPECT_TRUE(HasMirrorPods(pods));
  EXPECT_FALSE(HasMirrorPods({{"v", pods.at("v")}}));
}

TEST(KubernetesPods, a_static_pod_is_known_by_its_uid_on_the_node_if_the_kubelet_lists_its_name) {
  Pods pods = {{"u", {.name = "lab/serve-node-1", .asked = "7", .mirrored = "hash"}},
               {"v", {.name = "lab/imitation", .asked = "255", .mirrored = "other"}}};
  MirrorNames confirmed = ConfirmedMirrors(pods, {"lab/serve-node-1", "lab/another"});
  AddStaticPods(pods, confirmed);
  ASSERT_TRUE(pods.contains("hash"));
  EXPECT_EQ(pods.at("hash").name, "lab/serve-node-1");
  EXPECT_EQ(pods.at("hash").asked, "7");
  EXPECT_FALSE(pods.contains("other"));
}

TEST(KubernetesPods, of_several_mirror_pods_that_claim_one_static_pod_none_counts) {
  const Pods pods = {{"u", {.name = "lab/a", .mirrored = "hash"}},
                     {"v", {.name = "lab/b", .mirrored = "hash"}},
                     {"w", {.name = "lab/c", .mirrored = "hash"}},
                     {"x", {.name = "lab/d", .mirrored = "other"}}};
  EXPECT_EQ(ConfirmedMirrors(pods, {"lab/a", "lab/b", "lab/c", "lab/d"}), (MirrorNames{{"other", "lab/d"}}));
  EXPECT_EQ(ConfirmedMirrors(pods, {"lab/b"}), (MirrorNames{{"hash", "lab/b"}}))
      << "those that the kubelet does not list take nothing away";
}

TEST(KubernetesPods,
     a_mirror_pod_counts_with_the_name_and_the_uid_that_were_confirmed_and_while_it_is_there) {
  MirrorNames confirmed = {{"hash", "lab/serve"}, {"gone", "lab/old"}};
  Pods pods = {{"a", {.name = "lab/imitation", .mirrored = "hash"}},
               {"b", {.name = "lab/serve", .asked = "7", .mirrored = "hash"}},
               {"c", {.name = "lab/old", .mirrored = "third"}}};
  AddStaticPods(pods, confirmed);
  EXPECT_EQ(pods.size(), 4u);
  EXPECT_EQ(pods.at("hash").asked, "7");
  EXPECT_EQ(confirmed, (MirrorNames{{"hash", "lab/serve"}}));
}

TEST(KubernetesPods, a_mirror_pod_never_takes_the_place_of_a_pod_with_that_uid) {
  Pods pods = {{"a", {.name = "lab/mirror", .asked = "-7", .mirrored = "u"}},
               {"u", {.name = "lab/serve", .asked = "7"}}};
  MirrorNames confirmed = {{"u", "lab/mirror"}};
  AddStaticPods(pods, confirmed);
  EXPECT_EQ(pods.at("u").name, "lab/serve");
}

TEST(KubernetesPods, what_a_claim_asks_for_is_no_right_and_counts_after_the_annotation) {
  const ClassPriorities classes = {{"gpu-urgent", "50"}};
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent", .hami_priority = "0", .claimed = -20}, classes), -20);
  EXPECT_EQ(Priority({.priority_class = "gpu-urgent", .asked = "7", .claimed = -20}, classes), 7);
  EXPECT_EQ(Priority({.claimed = 20}), 0);
}

TEST(KubernetesPods, what_is_no_priority_is_named_and_does_not_count) {
  for (const std::string& text :
       {std::string("high"), std::string("1e3"), std::string("1 "), std::string(" 1"), std::string("+1"),
        std::string("0x1"), std::string("256"), std::string("-256"), std::string("99999999999999999999"),
        std::string("1\0", 2), std::string(100'000, '9'), std::string("--1"), std::string("1.5")}) {
    const PodPriority result = PriorityOf({.asked = text}, {}, kNoLimit);
    EXPECT_EQ(result.priority, std::nullopt) << text.substr(0, 40);
    EXPECT_THAT(result.problem, HasSubstr("is no number from -255 to 255"));
    EXPECT_LT(result.problem.size(), 200u);
  }
  const PodPriority result = PriorityOf({.priority_class = "c", .asked = "5"}, {{"c", "urgent"}}, kNoLimit);
  EXPECT_EQ(result.priority, 0) << "a class that is not understood gives no right";
}

}  // namespace
}  // namespace xsched::kubernetes
