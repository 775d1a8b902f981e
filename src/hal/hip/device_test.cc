#include "hal/hip/device.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <set>
#include <string>

#include "hal/hip/kfd/testing/topology.h"

namespace xsched::hip {
namespace {

using kfd::testing::Topology;

const char* the_address = "";

XDevice Identify(const char* address, const Topology& machine) {
  the_address = address;
  Functions runtime{};
  runtime.hipDeviceGetPCIBusId = [](char* text, int size, int) {
    snprintf(text, static_cast<size_t>(size), "%s", the_address);
    return hipSuccess;
  };
  DeviceIdentity identity;
  EXPECT_TRUE(IdentifyDevice(runtime, 0, &identity, machine.root()));
  return identity.device;
}

// From ROCm 6.2 on, the address has the last bits that the kernel says. Some kernels have the part's number
// there.
TEST(HipDevice, each_part_of_a_gpu_is_a_device_and_all_are_of_the_same_gpu) {
  const Topology machine;
  machine.Write("bus/pci/devices/0000:c1:00.0/vendor", "0x1002\n");
  std::set<XDevice> parts;
  for (int part = 0; part < 8; ++part) {
    const XDevice device = Identify(("0000:c1:00." + std::to_string(part)).c_str(), machine);
    EXPECT_EQ(WholeDevice(device), Topology::Device(0xc1));
    parts.insert(device);
  }
  EXPECT_EQ(parts.size(), 8u);
  EXPECT_EQ(parts.count(Topology::Device(0xc1)), 1u) << "the first part, and an undivided GPU";
}

TEST(HipDevice, a_function_that_the_machine_has_is_a_device_of_its_own) {
  const Topology machine;
  machine.Write("bus/pci/devices/0000:c1:00.0/vendor", "0x1002\n");
  machine.Write("bus/pci/devices/0000:c1:00.2/vendor", "0x1002\n");
  EXPECT_EQ(Identify("0000:c1:00.2", machine), MakeDevice(kDeviceTypeGPU, PciAddress(0, 0xc1, 0, 2)));
}

TEST(HipDevice, where_pci_devices_cannot_be_seen_the_address_stays_as_it_is) {
  EXPECT_EQ(Identify("0000:c1:00.2", Topology()), MakeDevice(kDeviceTypeGPU, PciAddress(0, 0xc1, 0, 2)));
}

}  // namespace
}  // namespace xsched::hip
