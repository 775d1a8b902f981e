#include "hal/hip/kfd/sysfs.h"

#include <gtest/gtest.h>

#include "hal/hip/kfd/testing/topology.h"

namespace xsched::hip::kfd {
namespace {

using testing::Topology;

TEST(KfdSysfs, gpus_are_found_by_kfds_number_for_them) {
  Topology topology;
  topology.Add(0);
  topology.Add(4242, 0xc1);
  topology.Add(17, 0xc2, 3);
  EXPECT_EQ(DeviceOf(topology.root(), 4242), Topology::Device(0xc1));
  EXPECT_EQ(DeviceOf(topology.root(), 17), Topology::Device(0xc2, 3));
  EXPECT_EQ(DeviceOf(topology.root(), 18), 0u);
  EXPECT_EQ(DeviceOf(topology.root(), 0), 0u) << "a CPU";
  EXPECT_TRUE(HasDevice(topology.root(), Topology::Device(0xc1)));
  EXPECT_FALSE(HasDevice(topology.root(), Topology::Device(0xc3)));
}

TEST(KfdSysfs, the_parts_of_a_gpu_are_one_gpu_to_kfd) {
  Topology topology;
  topology.Add(1, 0xc1, 0, 0);
  topology.Add(2, 0xc1, 0, 1);
  EXPECT_EQ(DeviceOf(topology.root(), 1), DeviceOf(topology.root(), 2));
}

TEST(KfdSysfs, a_part_with_its_number_in_the_place_of_the_function_is_of_the_gpu_with_function_0) {
  Topology topology;
  topology.Add(1, 0xc1);
  topology.Write("class/kfd/kfd/topology/nodes/1/gpu_id", "2\n");
  topology.Write("class/kfd/kfd/topology/nodes/1/properties", "location_id 49410\ndomain 0\n");  // c1:00.2
  EXPECT_NE(DeviceOf(topology.root(), 2), Topology::Device(0xc1)) << "the machine lists no PCI device at all";
  topology.Write("bus/pci/devices/0000:c1:00.0/vendor", "0x1002\n");
  EXPECT_EQ(DeviceOf(topology.root(), 2), Topology::Device(0xc1));
  EXPECT_TRUE(HasDevice(topology.root(), PartOfDevice(Topology::Device(0xc1), 2)));
  topology.Write("bus/pci/devices/0000:c1:00.2/vendor", "0x1002\n");
  EXPECT_NE(DeviceOf(topology.root(), 2), Topology::Device(0xc1)) << "a function of its own";
}

TEST(KfdSysfs, what_may_not_be_read_does_not_end_the_search) {
  Topology topology;
  topology.Add(0);
  topology.Add(1, 0xc1);
  topology.Add(2, 0xc2);
  topology.Write("class/kfd/kfd/topology/nodes/1/gpu_id", "");
  EXPECT_EQ(DeviceOf(topology.root(), 2), Topology::Device(0xc2));
  EXPECT_EQ(DeviceOf(topology.root(), 1), 0u);
}

TEST(KfdSysfs, a_machine_without_the_driver_has_no_gpu) {
  EXPECT_EQ(DeviceOf("/nowhere", 1), 0u);
  EXPECT_FALSE(HasDevice("/nowhere", Topology::Device(0xc1)));
}

TEST(KfdSysfs, saving_what_runs_is_on_unless_turned_off) {
  const Topology topology;
  EXPECT_TRUE(SavesWaves(topology.root()));
  topology.Write("module/amdgpu/parameters/cwsr_enable", "1\n");
  EXPECT_TRUE(SavesWaves(topology.root()));
  topology.Write("module/amdgpu/parameters/cwsr_enable", "0\n");
  EXPECT_FALSE(SavesWaves(topology.root()));
}

}  // namespace
}  // namespace xsched::hip::kfd
