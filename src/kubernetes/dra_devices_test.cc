#include "kubernetes/dra_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xsched::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Gpu GpuOf(const std::string& id, int numa_node = -1) {
  Gpu gpu;
  gpu.device.id = id;
  gpu.numa_node = numa_node;
  return gpu;
}

std::vector<std::string> NamesOf(const std::vector<DraDevice>& devices) {
  std::vector<std::string> names;
  for (const DraDevice& device : devices) names.push_back(device.name);
  return names;
}

TEST(KubernetesDraDevices, a_gpu_is_so_many_slots_whose_names_say_how_many_there_are) {
  EXPECT_THAT(NamesOf(DraDevicesOf({GpuOf("GPU-aB12"), GpuOf("cpu0")}, {.slots = 2})),
              ElementsAre("gpu-ab12-0-of-2", "gpu-ab12-1-of-2", "cpu0-0-of-2", "cpu0-1-of-2"));
}

TEST(KubernetesDraDevices, by_capacity_a_gpu_is_one_device) {
  EXPECT_THAT(NamesOf(DraDevicesOf({GpuOf("GPU-aB12"), GpuOf("cpu0")}, {.by_capacity = true})),
              ElementsAre("gpu-ab12", "cpu0"));
}

TEST(KubernetesDraDevices, a_device_belongs_to_its_gpu_in_whatever_form_it_was_offered) {
  const std::vector<Gpu> gpus = {GpuOf("GPU-a"), GpuOf("GPU-a-b"), GpuOf("gpu.A")};
  EXPECT_EQ(GpuOfDraDevice(gpus, "gpu-a"), &gpus[0]);
  EXPECT_EQ(GpuOfDraDevice(gpus, "gpu-a-3-of-10"), &gpus[0]);
  EXPECT_EQ(GpuOfDraDevice(gpus, "gpu-a-b-0-of-2"), &gpus[1]);
  for (const char* name :
       {"", "gpu", "gpu-a-", "gpu-a-3", "gpu-a-3-of-", "gpu-a--of-3", "gpu-a-x-of-3", "gpu-c"})
    EXPECT_EQ(GpuOfDraDevice(gpus, name), nullptr) << name;
}

TEST(KubernetesDraDevices, the_name_of_a_slot_says_its_gpu_and_how_many_there_are) {
  const auto slot = SlotOf("gpu-a-of-b-9-of-10");
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->gpu, "gpu-a-of-b");
  EXPECT_EQ(slot->slots, 10);
  for (const char* name :
       {"", "gpu-a", "-of-10", "3-of-10", "-3-of-10", "gpu-a-10-of-10", "gpu-a-0-of-33", "gpu-a-0-of-0",
        "gpu-a-00-of-10", "gpu-a-0-of-010", "gpu-a-0-of-10 ", "gpu-a-0-of-99999999999"})
    EXPECT_FALSE(SlotOf(name)) << name;
}

TEST(KubernetesDraDevices, a_gpu_that_does_not_work_is_not_offered) {
  Gpu broken = GpuOf("b");
  broken.works = false;
  EXPECT_THAT(NamesOf(DraDevicesOf({GpuOf("a"), broken}, {.slots = 1})), ElementsAre("a-0-of-1"));
}

TEST(KubernetesDraDevices, ids_that_give_no_name_of_their_own_are_named_and_left_out) {
  const std::vector<Gpu> gpus = {GpuOf("a.b"), GpuOf("A:b"), GpuOf(std::string(55, 'x')),
                                 GpuOf("-c"),  GpuOf("c_"),  GpuOf(std::string(54, 'y'))};
  EXPECT_EQ(ProblemOfDraName(gpus, gpus[0]), "");
  EXPECT_EQ(ProblemOfDraName(gpus, gpus[1]), "a.b and A:b would have the same name, a-b");
  EXPECT_THAT(ProblemOfDraName(gpus, gpus[2]), HasSubstr("has more than 54 characters"));
  EXPECT_THAT(ProblemOfDraName(gpus, gpus[3]), HasSubstr("does not begin and end with a letter or a digit"));
  EXPECT_THAT(ProblemOfDraName(gpus, gpus[4]), HasSubstr("does not begin and end with a letter or a digit"));
  const std::vector<DraDevice> devices = DraDevicesOf(gpus, {.slots = kMostSlots});
  EXPECT_EQ(devices.size(), 2u * kMostSlots);
  EXPECT_EQ(devices.back().name.size(), 63u) << "the longest label";
}

TEST(KubernetesDraDevices, what_is_published_of_a_slot_needs_no_feature) {
  const Division division{.slots = 4};
  const auto slices = PublishedDevices(DraDevicesOf({GpuOf("GPU-a", 1)}, division), division);
  ASSERT_EQ(slices.size(), 1u);
  ASSERT_EQ(slices[0].size(), 4u);
  EXPECT_EQ(slices[0][3], json::parse(R"({"name": "gpu-a-3-of-4",
    "attributes": {"gpu": {"string": "GPU-a"}, "numaNode": {"int": 1}},
    "capacity": {"share": {"value": "25"}}})"));
}

TEST(KubernetesDraDevices, by_capacity_claims_consume_percents_and_all_of_it_unless_they_say_how_much) {
  const Division division{.by_capacity = true};
  const auto slices = PublishedDevices(DraDevicesOf({GpuOf("GPU-a")}, division), division);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0], json::parse(R"([{"name": "gpu-a", "attributes": {"gpu": {"string": "GPU-a"}},
    "allowMultipleAllocations": true,
    "capacity": {"share": {"value": "100",
                           "requestPolicy": {"default": "100", "validRange": {"min": "1", "step": "1"}}}}}])"));
}

TEST(KubernetesDraDevices, a_slice_has_at_most_128_of_them) {
  std::vector<Gpu> gpus;
  for (int i = 0; i < 13; ++i) gpus.push_back(GpuOf("gpu" + std::to_string(i)));
  const Division division;
  const auto slices = PublishedDevices(DraDevicesOf(gpus, division), division);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].size(), 128u);
  EXPECT_EQ(slices[1].size(), 2u);
  EXPECT_TRUE(PublishedDevices({}, division).empty());
}

}  // namespace
}  // namespace xsched::kubernetes
