#include "hal/cuda/device.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <string.h>

#include "base/pci_address.h"

namespace xsched::cuda {
namespace {

constexpr XDevice kGpu = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0x3b, 0, 0));

// What the driver reports about its only device.
const char* name = nullptr;
char gpu = 0;       // the last octet of its number, from the older function
char instance = 0;  // the same, from the newer function

CUresult Number(CUuuid* out, char last) {
  memcpy(out->bytes, "0123456789abcde", sizeof out->bytes);
  out->bytes[15] = last;
  return CUDA_SUCCESS;
}

XDevice Identify(const char* the_name, char the_gpu, char the_instance) {
  name = the_name;
  gpu = the_gpu;
  instance = the_instance;
  Functions driver{};
  driver.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  driver.cuDeviceGetPCIBusId = [](char* out, int size, CUdevice) {
    snprintf(out, static_cast<size_t>(size), "0000:3b:00.0");
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char* out, int size, CUdevice) {
    snprintf(out, static_cast<size_t>(size), "%s", name);
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetUuid = [](CUuuid* out, CUdevice) { return Number(out, gpu); };
  driver.cuDeviceGetUuid_v2 = [](CUuuid* out, CUdevice) { return Number(out, instance); };
  DeviceIdentity identity;
  EXPECT_TRUE(IdentifyCurrentDevice(driver, &identity));
  EXPECT_STREQ(identity.name, the_name);
  return identity.device;
}

TEST(Device, a_gpu_is_known_by_its_pci_address) { EXPECT_EQ(Identify("NVIDIA H200", 'g', 'g'), kGpu); }

TEST(Device, instances_of_a_divided_gpu_are_devices_of_their_own) {
  const XDevice one = Identify("NVIDIA H200 MIG 1g.18gb", 'g', 'a');
  const XDevice other = Identify("NVIDIA H200 MIG 1g.18gb", 'g', 'b');
  EXPECT_NE(one, other);
  EXPECT_NE(one, kGpu);
  EXPECT_EQ(one, Identify("NVIDIA H200 MIG 1g.18gb", 'g', 'a')) << "the same in every process";
}

TEST(Device, instances_are_recognized_by_their_name_where_the_driver_has_one_number_only) {
  EXPECT_NE(Identify("NVIDIA H200 MIG 1g.18gb", 'a', 'a'), Identify("NVIDIA H200 MIG 1g.18gb", 'b', 'b'));
}

TEST(Device, level_3_finds_the_gpu_of_an_instance) {
  EXPECT_EQ(WholeDevice(Identify("NVIDIA H200 MIG 1g.18gb", 'g', 'a')), kGpu);
  EXPECT_EQ(WholeDevice(kGpu), kGpu);
}

}  // namespace
}  // namespace xsched::cuda
