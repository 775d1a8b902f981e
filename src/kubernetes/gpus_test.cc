#include "kubernetes/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/exit_codes.h"
#include "kubernetes/testing/node_folder.h"

namespace xsched::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NodeFolder;
using ::testing::Not;

constexpr const char* kUuid = "GPU-fef8089b-4820-abfc-e83e-94318197576e";

TEST(KubernetesGpus, those_that_a_kernel_driver_lists_are_found_with_what_containers_need) {
  const NodeFolder node;
  node.AddCudaGpu("0000:3b:00.0", kUuid, 3);
  node.AddHipGpu("0000:c1:00.0", 0x1234, 129);
  GpuList gpus({}, node.path(), node.path() + "/dev");
  EXPECT_TRUE(gpus.Update());
  ASSERT_EQ(gpus.all().size(), 2u);
  const Gpu& first = gpus.all()[0];
  EXPECT_EQ(first.device.id, kUuid);
  EXPECT_EQ(first.device.pci_address, "0000:3b:00.0");
  EXPECT_EQ(first.device.cdi, std::string("nvidia.com/gpu=") + kUuid);
  EXPECT_THAT(first.device.files, ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia3"));
  EXPECT_EQ(first.numa_node, 1);
  EXPECT_TRUE(first.works);
  const Gpu& second = gpus.all()[1];
  EXPECT_EQ(second.device.id, "GPU-0000000000001234");
  EXPECT_EQ(second.device.pci_address, "0000:c1:00.0");
  EXPECT_EQ(second.device.cdi, "");
  EXPECT_THAT(second.device.files, ElementsAre("/dev/kfd", "/dev/dri/renderD129"));
  EXPECT_FALSE(gpus.Update()) << "nothing has changed";
}

TEST(KubernetesGpus, each_part_of_a_divided_gpu_is_offered_and_works_with_the_gpu) {
  const NodeFolder node;
  node.AddHipGpu("0000:c1:00.0", 0x1234, 128);
  node.AddHipPart("0000:c1:00.0", 2, 0x1234, 130);
  node.AddHipPart("0000:c1:00.0", 3u << 28, 0x1234, 131);
  GpuList gpus({}, node.path(), node.path() + "/dev");
  gpus.Update();
  ASSERT_EQ(gpus.all().size(), 3u);
  for (const char* id : {"GPU-0000000000001234", "GPU-0000000000001234.2", "GPU-0000000000001234.3"}) {
    const Gpu* part = gpus.Find(id);
    ASSERT_NE(part, nullptr) << id;
    EXPECT_EQ(part->device.pci_address, "0000:c1:00.0");
    EXPECT_EQ(part->numa_node, 1);
    EXPECT_TRUE(part->works);
  }
  EXPECT_THAT(gpus.Find("GPU-0000000000001234.2")->device.files, Contains("/dev/dri/renderD130"));
}

TEST(KubernetesGpus, processors_and_excluded_or_unknown_gpus_are_left_out) {
  const NodeFolder node;
  node.AddHipGpu("0000:00:00.0", 0, 0, 0);
  node.AddCudaGpu("0000:3b:00.0", "GPU-" + std::string(8, '?'), 0);
  node.AddCudaGpu("0000:3c:00.0", kUuid, 1, "Yes");
  GpuList gpus({}, node.path(), node.path() + "/dev");
  EXPECT_FALSE(gpus.Update());
  EXPECT_TRUE(gpus.all().empty());
}

TEST(KubernetesGpus, a_gpu_that_is_off_the_bus_or_not_listed_any_more_does_not_work) {
  const NodeFolder node;
  node.AddCudaGpu("0000:3b:00.0", kUuid, 0);
  GpuList gpus({}, node.path(), node.path() + "/dev");
  gpus.Update();
  ASSERT_TRUE(gpus.Find(kUuid)->works);
  node.TakeOffBus("0000:3b:00.0");
  EXPECT_TRUE(gpus.Update());
  EXPECT_FALSE(gpus.Find(kUuid)->works);
  node.AddCudaGpu("0000:3b:00.0", kUuid, 0);
  EXPECT_TRUE(gpus.Update());
  EXPECT_TRUE(gpus.Find(kUuid)->works) << "it is back";
  std::filesystem::remove_all(node.path() + "/proc/driver");
  EXPECT_TRUE(gpus.Update());
  EXPECT_FALSE(gpus.Find(kUuid)->works);
}

TEST(KubernetesGpus, a_named_device_works_while_its_files_are_there) {
  const NodeFolder node;
  const std::string file = node.path() + "/device";
  std::ofstream(file) << "";
  GpuList gpus({ReadNamedDevice("cpu0,cdi=vendor.com/cpu=0,file=" + file)}, node.path());
  gpus.Update();
  EXPECT_EQ(gpus.Find("cpu0")->device.cdi, "vendor.com/cpu=0");
  EXPECT_TRUE(gpus.Find("cpu0")->works);
  EXPECT_FALSE(gpus.Update());
  std::filesystem::remove(file);
  EXPECT_TRUE(gpus.Update());
  EXPECT_FALSE(gpus.Find("cpu0")->works);
}

TEST(KubernetesGpus, a_named_device_is_looked_for_where_the_machines_files_are_seen) {
  const NodeFolder node;
  node.AddFile("/dev/npu0");
  GpuList gpus({ReadNamedDevice("npu0,file=/dev/npu0")}, node.path(), node.path() + "/dev");
  gpus.Update();
  EXPECT_TRUE(gpus.Find("npu0")->works);
  EXPECT_THAT(gpus.Find("npu0")->device.files, ElementsAre("/dev/npu0")) << "and has the machine's names";
}

TEST(KubernetesGpus, files_that_are_not_there_are_left_out_until_they_come) {
  const NodeFolder node;
  node.AddCudaGpu("0000:3b:00.0", kUuid, 3);
  for (const char* file : {"/dev/nvidiactl", "/dev/nvidia3"}) node.AddFile(file);
  GpuList gpus({}, node.path(), node.path() + "/dev");
  gpus.Update();
  EXPECT_THAT(gpus.Find(kUuid)->device.files, ElementsAre("/dev/nvidiactl", "/dev/nvidia3"));
  EXPECT_TRUE(gpus.Find(kUuid)->works) << "its driver makes the other one for the first program";
  node.AddFile("/dev/nvidia-uvm");
  EXPECT_TRUE(gpus.Update());
  EXPECT_THAT(gpus.Find(kUuid)->device.files,
              ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia3"));
  EXPECT_FALSE(gpus.Update());
}

TEST(KubernetesGpus, one_that_only_its_files_give_to_containers_needs_all_of_them) {
  const NodeFolder node;
  node.AddHipGpu("0000:c1:00.0", 0x1234, 129);
  node.AddFile("/dev/kfd");
  GpuList gpus({}, node.path(), node.path() + "/dev");
  gpus.Update();
  EXPECT_FALSE(gpus.Find("GPU-0000000000001234")->works);
  node.AddFile("/dev/dri/renderD129");
  EXPECT_TRUE(gpus.Update());
  EXPECT_TRUE(gpus.Find("GPU-0000000000001234")->works);
}

TEST(KubernetesGpus, one_that_its_driver_numbers_anew_has_its_new_files) {
  const NodeFolder node;
  node.AddCudaGpu("0000:3b:00.0", kUuid, 3);
  GpuList gpus({}, node.path(), node.path() + "/dev");
  gpus.Update();
  node.AddCudaGpu("0000:3b:00.0", kUuid, 0);
  EXPECT_TRUE(gpus.Update());
  EXPECT_THAT(gpus.Find(kUuid)->device.files, Contains("/dev/nvidia0"));
  EXPECT_THAT(gpus.Find(kUuid)->device.files, Not(Contains("/dev/nvidia3")));
  EXPECT_EQ(gpus.all().size(), 1u);
}

TEST(KubernetesGpus, a_wrong_name_of_a_device_says_what_is_wrong) {
  for (const auto& [text, wanted] : {std::pair{"", "can name no device"},
                                     {"a/b", "can name no device"},

                                     {"a,b", "neither cdi="},
                                     {"a,cdi=x", "neither cdi="},
                                     {"a,file=x", "neither cdi="},
                                     {",cdi=a=b", "can name no device"}}) {
    try {
      ReadNamedDevice(text);
      ADD_FAILURE() << text;
    } catch (const cli::CommandError& error) {
      EXPECT_THAT(error.what(), HasSubstr(wanted)) << text;
    }
  }
  EXPECT_THROW(GpuList({ReadNamedDevice("a"), ReadNamedDevice("a")}, "/"), cli::CommandError);
}

}  // namespace
}  // namespace xsched::kubernetes
