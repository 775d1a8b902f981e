#include "kubernetes/container_shares.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "kubernetes/shares.h"

namespace xsched::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::ListPodResourcesResponse ListOf(const std::string& containers) {
  v1::ListPodResourcesResponse list;
  const std::string text =
      fmt::format(R"(pod_resources {{ name: "train" namespace: "lab" {} }})", containers);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &list)) << text;
  return list;
}

// Each device by itself, as the kubelet lists them.
std::string SharesText(const std::string& gpu, int count) {
  std::string text;
  for (int number = 0; number < count; ++number)
    text +=
        fmt::format(R"(devices {{ resource_name: "xsched.org/share" device_ids: "{}::{}" }} )", gpu, number);
  return text;
}

std::string ClaimText(const std::string& name, const std::vector<std::string>& devices,
                      const std::string& driver = "gpu.xsched.org") {
  std::string text = fmt::format(R"(dynamic_resources {{ claim_name: "{}" claim_namespace: "lab" )", name);
  for (const std::string& device : devices)
    text += fmt::format(R"(claim_resources {{ driver_name: "{}" pool_name: "node-1" device_name: "{}" }} )",
                        driver, device);
  return text + "} ";
}

TEST(KubernetesContainerShares, devices_that_the_kubelet_lists_one_by_one_are_the_share_of_their_container) {
  const auto list =
      ListOf("containers { name: \"a\" " + SharesText("GPU-1", 30) + "} containers { name: \"b\" " +
             SharesText("GPU-2", 100) + SharesText("GPU-1", 100) + "}");
  EXPECT_THAT(ContainerSharesIn(list), ElementsAre(ContainerShare{"lab/train", "a", "GPU-1", 30, ""},
                                                   ContainerShare{"lab/train", "b", "GPU-1", 100, ""},
                                                   ContainerShare{"lab/train", "b", "GPU-2", 100, ""}));
}

TEST(KubernetesContainerShares, slots_of_a_claim_are_added_up_for_each_gpu) {
  const auto list = ListOf("containers { name: \"a\" " +
                           ClaimText("two", {"gpu-1-0-of-10", "gpu-1-7-of-10", "gpu-2-1-of-4"}) +
                           ClaimText("one", {"gpu-2-0-of-4", "gpu-2-0-of-4"}) + "}");
  EXPECT_THAT(ContainerSharesIn(list), ElementsAre(ContainerShare{"lab/train", "a", "gpu-1", 20, "lab/two"},
                                                   ContainerShare{"lab/train", "a", "gpu-2", 25, "lab/two"},
                                                   ContainerShare{"lab/train", "a", "gpu-2", 25, "lab/one"}));
}

TEST(KubernetesContainerShares, the_percentage_of_a_claim_by_capacity_is_not_known) {
  EXPECT_THAT(ContainerSharesIn(ListOf("containers { name: \"a\" " + ClaimText("c", {"gpu-1"}) + "}")),
              ElementsAre(ContainerShare{"lab/train", "a", "gpu-1", std::nullopt, "lab/c"}));
}

TEST(KubernetesContainerShares, resources_of_others_and_ids_of_no_share_are_left_out) {
  const auto list = ListOf(
      R"(containers { name: "a" devices { resource_name: "nvidia.com/gpu" device_ids: "GPU-1::3" }
         devices { resource_name: "xsched.org/share" device_ids: ["", "GPU-1", "GPU-1::100", "::1"] } )" +
      ClaimText("c", {"gpu-1-0-of-10"}, "gpu.nvidia.com") + "}");
  EXPECT_THAT(ContainerSharesIn(list), IsEmpty());
}

}  // namespace
}  // namespace xsched::kubernetes
