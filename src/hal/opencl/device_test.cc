#include "hal/opencl/device.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/pci_address.h"

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

// What AMD's driver says of a device.
struct AmdGpu {
  unsigned char bus;
};
std::vector<AmdGpu>* listed_gpus = nullptr;

cl_device_id IdOf(size_t index) { return reinterpret_cast<cl_device_id>(&(*listed_gpus)[index]); }

cl_int DeviceInfo(cl_device_id device, cl_device_info what, size_t room, void* out, size_t* size) {
  const auto answer = [&](const void* value, size_t length) {
    if (out != nullptr && room < length) return CL_INVALID_VALUE;
    if (out != nullptr) memcpy(out, value, length);
    if (size != nullptr) *size = length;
    return CL_SUCCESS;
  };
  constexpr cl_device_info kTopology = 0x4037;
  static constexpr char kName[] = "gfx942";
  static int platform;
  const void* const platform_id = &platform;
  if (what == CL_DEVICE_NAME) return answer(kName, sizeof kName);
  if (what == CL_DEVICE_PLATFORM) return answer(&platform_id, sizeof platform_id);
  if (what != kTopology) return CL_INVALID_VALUE;
  struct {
    cl_uint type = 1;
    unsigned char rest[20] = {};
  } topology;
  topology.rest[17] = reinterpret_cast<const AmdGpu*>(device)->bus;
  return answer(&topology, sizeof topology);
}

cl_int DeviceIds(cl_platform_id, cl_device_type, cl_uint room, cl_device_id* out, cl_uint* count) {
  if (count != nullptr) *count = static_cast<cl_uint>(listed_gpus->size());
  for (cl_uint i = 0; out != nullptr && i < room && i < listed_gpus->size(); ++i) out[i] = IdOf(i);
  return CL_SUCCESS;
}

class AmdDevices : public ::testing::Test {
 protected:
  AmdDevices() {
    unsetenv("ROCR_VISIBLE_DEVICES");
    unsetenv("GPU_DEVICE_ORDINAL");
    char path[] = "/tmp/xsched-test-XXXXXX";
    sysfs_ = mkdtemp(path);
    listed_gpus = &gpus_;
    next_.clGetDeviceInfo = DeviceInfo;
    next_.clGetDeviceIDs = DeviceIds;
    next_.clGetPlatformInfo = [](cl_platform_id, cl_platform_info, size_t, void*, size_t*) {
      return CL_SUCCESS;
    };
  }
  ~AmdDevices() override { std::filesystem::remove_all(sysfs_); }

  void AddPci(const std::string& address, const char* vendor = "0x1002", const char* kind = "0x038000") {
    const auto folder = std::filesystem::path(sysfs_) / "bus/pci/devices" / address;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "vendor") << vendor << "\n";
    std::ofstream(folder / "class") << kind << "\n";
  }
  XDeviceId NumberOf(size_t index) {
    return static_cast<XDeviceId>(IdentifyDevice(next_, IdOf(index), sysfs_.c_str()).device);
  }

  std::string sysfs_;
  std::vector<AmdGpu> gpus_;
  Functions next_{};
};

TEST_F(AmdDevices, the_domain_of_a_gpu_is_found_by_the_rest_of_its_address) {
  gpus_ = {{0xc1}};
  AddPci("0000:c1:00.0", "0x10de");
  AddPci("0002:c1:00.0");
  AddPci("0003:c2:00.0");
  AddPci("0004:c1:00.0", "0x1002", "0x060400");  // a switch of the same vendor
  EXPECT_EQ(NumberOf(0), PciAddress(2, 0xc1, 0, 0));
}

TEST_F(AmdDevices, gpus_of_several_domains_are_several_devices) {
  gpus_ = {{1}, {1}, {1}};
  for (const char* address : {"0001:01:00.0", "0000:01:00.0", "000f:01:00.0"}) AddPci(address);
  EXPECT_EQ(NumberOf(0), PciAddress(0, 1, 0, 0));
  EXPECT_EQ(NumberOf(1), PciAddress(1, 1, 0, 0));
  EXPECT_EQ(NumberOf(2), PciAddress(0xf, 1, 0, 0));
}

TEST_F(AmdDevices, gpus_that_the_user_has_put_in_order_are_not_told_apart_by_their_order) {
  gpus_ = {{1}, {1}};
  for (const char* address : {"0000:01:00.0", "0001:01:00.0"}) AddPci(address);
  setenv("ROCR_VISIBLE_DEVICES", "1,0", 1);
  const XDeviceId first = NumberOf(0);
  const XDeviceId second = NumberOf(1);
  unsetenv("ROCR_VISIBLE_DEVICES");
  EXPECT_NE(first, second);
  for (XDeviceId number : {first, second})
    EXPECT_TRUE(number != PciAddress(0, 1, 0, 0) && number != PciAddress(1, 1, 0, 0));
}

// A container that was given some of them.
TEST_F(AmdDevices, gpus_of_which_some_are_hidden_are_still_several_devices) {
  gpus_ = {{1}, {1}};
  for (const char* address : {"0000:01:00.0", "0001:01:00.0", "0002:01:00.0"}) AddPci(address);
  EXPECT_NE(NumberOf(0), NumberOf(1));
}

TEST_F(AmdDevices, without_sysfs_the_domain_is_0) {
  gpus_ = {{0xc1}};
  EXPECT_EQ(NumberOf(0), PciAddress(0, 0xc1, 0, 0));
}

}  // namespace
}  // namespace xsched::opencl
