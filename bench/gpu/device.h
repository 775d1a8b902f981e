// The GPU for the benchmarks: one device, its primary context, streams, and the work kernel with a given
// length. The driver is found as frameworks find it, by dlopen, dlsym and cuGetProcAddress. Errors are
// exceptions. It does not use XSched.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

namespace xsched::bench {

// The driver's functions, each in the version that this cuda.h declares.
// clang-format off
#define XSCHED_BENCH_DRIVER(F) \
  F(cuInit) F(cuGetErrorName) F(cuDeviceGet) F(cuDeviceGetName) F(cuDeviceGetAttribute) \
  F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuModuleLoadData) F(cuModuleGetFunction) \
  F(cuStreamCreate) F(cuStreamSynchronize) F(cuStreamDestroy) F(cuLaunchKernel) F(cuEventCreate) \
  F(cuEventRecord) F(cuEventSynchronize) F(cuEventDestroy) F(cuMemHostAlloc) \
  F(cuMemHostRegister) F(cuMemHostGetDevicePointer) F(cuMemAlloc) F(cuMemAllocAsync) F(cuMemFree) F(cuMemFreeAsync) \
  F(cuMemcpyHtoD) F(cuMemcpyDtoH)
// clang-format on

class Driver {
 public:
  Driver();
#define XSCHED_BENCH_MEMBER(name) decltype(&::name) name = nullptr;
  XSCHED_BENCH_DRIVER(XSCHED_BENCH_MEMBER)
#undef XSCHED_BENCH_MEMBER
  void Check(CUresult result, const char* what) const;
  // A function of the driver by its plain name, in the version of this cuda.h. Throws if the driver has none.
  template <typename Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(FindAddress(name));
  }

 private:
  void* FindAddress(const char* name) const;
  void* library_;
};

// Queue time of one kernel: base_us + loops / loops_per_us.
struct Calibration {
  double base_us = 0;
  double loops_per_us = 0;
};

class Device {
 public:
  Device();

  const Driver& driver() const { return driver_; }
  std::string Name() const;
  void MakeCurrent() const { driver_.Check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

  CUstream NewStream() const;
  void Synchronize(CUstream stream) const {
    driver_.Check(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  // Fills the device: every thread of every multiprocessor. `beat`: a word from Beat(), or null.
  void Launch(CUstream stream, uint32_t loops, const volatile uint64_t* beat = nullptr) const;

  // The loops of a kernel of that length. Throws if not calibrated.
  uint32_t Loops(double kernel_us) const;
  void Use(const Calibration& calibration) { calibration_ = calibration; }
  // REQUIRES: nothing else uses the device.
  Calibration Calibrate() const;

  // Two words. A running kernel changes the first all the time, and each kernel increments the second at its
  // end (work_kernel.h).
  const volatile uint64_t* Beat() const { return beat_; }
  // Puts these words into a file, so that other processes can read them at any time.
  void ShareBeat(const std::string& path);

 private:
  // Microseconds of a kernel, of many in a row.
  double KernelTime(CUstream stream, uint32_t loops) const;

  Driver driver_;
  CUdevice device_{};
  CUcontext context_{};
  CUfunction work_{};
  unsigned blocks_ = 0;
  Calibration calibration_;
  uint64_t* beat_ = nullptr;
  CUdeviceptr beat_on_device_{};
};

}  // namespace xsched::bench
