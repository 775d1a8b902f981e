#include "hal/opencl/device.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <filesystem>

namespace xsched::opencl {
namespace {

constexpr cl_device_info kPciBusInfo = 0x410F;  // cl_khr_pci_bus_info

// A machine with one GPU, of which the driver says that it has this function.
XDevice Identify(cl_uint function) {
  static cl_uint the_function;
  the_function = function;
  Functions driver{};
  driver.clGetDeviceInfo = [](cl_device_id, cl_device_info what, size_t size, void* value, size_t* actual) {
    const cl_uint address[4] = {0, 0xc1, 0, the_function};
    const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    const bool is_address = what == kPciBusInfo;
    if (!is_address && what != CL_DEVICE_TYPE) return CL_INVALID_VALUE;
    const size_t length = is_address ? sizeof address : sizeof gpu;
    if (actual != nullptr) *actual = length;
    if (size >= length && value != nullptr)
      memcpy(value, is_address ? static_cast<const void*>(address) : &gpu, length);
    return CL_SUCCESS;
  };
  char root[] = "/tmp/xsched-opencl-XXXXXX";
  EXPECT_NE(mkdtemp(root), nullptr);
  std::filesystem::create_directories(std::string(root) + "/bus/pci/devices/0000:c1:00.0");
  const DeviceIdentity identity = IdentifyDevice(driver, nullptr, root);
  std::filesystem::remove_all(root);
  return identity.device;
}

TEST(OpenClDevice, a_part_of_a_divided_gpu_has_the_number_that_hip_gives_it) {
  constexpr XDevice kGpu = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0xc1, 0, 0));
  EXPECT_EQ(Identify(0), kGpu);
  EXPECT_EQ(Identify(2), PartOfDevice(kGpu, 2));
}

}  // namespace
}  // namespace xsched::opencl
