#include "device.h"

#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "clock.h"
#include "work_kernel.h"

namespace xsched::bench {

namespace {
constexpr unsigned kThreads = 1024;
}  // namespace

Driver::Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
  if (library_ == nullptr) throw std::runtime_error(dlerror());
// The string is the plain name. The member's name may have a version, by cuda.h's macros.
#define XSCHED_BENCH_FIND(function) function = Find<decltype(function)>(#function);
  XSCHED_BENCH_DRIVER(XSCHED_BENCH_FIND)
#undef XSCHED_BENCH_FIND
}

void* Driver::FindAddress(const char* name) const {
  auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library_, "cuGetProcAddress_v2"));
  if (get == nullptr) throw std::runtime_error("the driver is older than CUDA 12");
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  if (get(name, &function, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||
      function == nullptr) {
    throw std::runtime_error(std::string("the driver has no ") + name);
  }
  return function;
}

void Driver::Check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string(what) + ": " +
                           (name == nullptr ? std::to_string(static_cast<int>(result)) : name));
}

Device::Device() {
  driver_.Check(driver_.cuInit(0), "cuInit");
  driver_.Check(driver_.cuDeviceGet(&device_, 0), "cuDeviceGet");
  driver_.Check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  MakeCurrent();
  CUmodule module;
  driver_.Check(driver_.cuModuleLoadData(&module, kWorkKernel), "cuModuleLoadData");
  driver_.Check(driver_.cuModuleGetFunction(&work_, module, "work"), "cuModuleGetFunction");
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver_.Check(driver_.cuDeviceGetAttribute(&value, which, device_), "cuDeviceGetAttribute");
    return static_cast<unsigned>(value);
  };
  blocks_ = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
            std::max(1u, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / kThreads);
  void* beat;
  driver_.Check(driver_.cuMemHostAlloc(&beat, 2 * sizeof *beat_, CU_MEMHOSTALLOC_DEVICEMAP),
                "cuMemHostAlloc");
  beat_ = static_cast<uint64_t*>(beat);
  beat_[0] = beat_[1] = 0;
  driver_.Check(driver_.cuMemHostGetDevicePointer(&beat_on_device_, beat, 0), "cuMemHostGetDevicePointer");
}

void Device::ShareBeat(const std::string& path) {
  constexpr size_t kPage = 4096;
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, kPage) != 0) throw std::runtime_error("cannot write " + path);
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  driver_.Check(driver_.cuMemHostRegister(memory, kPage, CU_MEMHOSTREGISTER_DEVICEMAP), "cuMemHostRegister");
  beat_ = static_cast<uint64_t*>(memory);
  driver_.Check(driver_.cuMemHostGetDevicePointer(&beat_on_device_, memory, 0), "cuMemHostGetDevicePointer");
}

std::string Device::Name() const {
  char name[256] = {};
  driver_.Check(driver_.cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
  return name;
}

CUstream Device::NewStream() const {
  CUstream stream;
  driver_.Check(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

void Device::Launch(CUstream stream, uint32_t loops, const volatile uint64_t* beat) const {
  CUdeviceptr word = beat == nullptr ? 0 : beat_on_device_;
  void* arguments[] = {&word, &loops};
  driver_.Check(driver_.cuLaunchKernel(work_, blocks_, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr),
                "cuLaunchKernel");
}

uint32_t Device::Loops(double kernel_us) const {
  if (calibration_.loops_per_us <= 0) throw std::runtime_error("calibrate first");
  double loops = (kernel_us - calibration_.base_us) * calibration_.loops_per_us;
  return static_cast<uint32_t>(std::max(1.0, std::round(loops)));
}

double Device::KernelTime(CUstream stream, uint32_t loops) const {
  constexpr int kKernels = 200;
  double begin = Seconds();
  for (int k = 0; k < kKernels; ++k) Launch(stream, loops);
  Synchronize(stream);
  return (Seconds() - begin) * 1e6 / kKernels;
}

Calibration Device::Calibrate() const {
  constexpr uint32_t kShort = 64;
  constexpr uint32_t kLong = 2048;
  CUstream stream = NewStream();
  // First wait until the GPU's clocks have risen.
  for (double begin = Seconds(); Seconds() - begin < 0.5;) KernelTime(stream, kLong);
  // In turns, because other programs may disturb either for a while.
  double short_us = 1e12;
  double long_us = 1e12;
  for (int i = 0; i < 32; ++i) {
    short_us = std::min(short_us, KernelTime(stream, kShort));
    long_us = std::min(long_us, KernelTime(stream, kLong));
  }
  driver_.Check(driver_.cuStreamDestroy(stream), "cuStreamDestroy");
  if (long_us <= short_us) throw std::runtime_error("the device is too busy to be calibrated");
  double loops_per_us = (kLong - kShort) / (long_us - short_us);
  return {std::max(0.0, short_us - kShort / loops_per_us), loops_per_us};
}

}  // namespace xsched::bench
