// The programs of `xsched calibrate` on a CUDA device. The driver is found as programs find it, by dlopen and
// dlsym, so that the tools need no headers of CUDA.
#include "platforms/cuda/work_device.h"

#include <algorithm>
#include <array>

#include "cli/doctor/probed_library.h"
#include "platforms/cuda/doctor.h"

namespace xsched::cli::cuda {
namespace {

constexpr int kMultiprocessors = 16;
constexpr int kThreadsPerMultiprocessor = 39;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kNoTiming = 2;
constexpr unsigned kThreads = 1024;

// Each thread does 32 dependent multiply-adds per loop. The driver compiles it for the device. `unused` is
// null: that the sums may be stored there makes the compiler compute them.
constexpr char kKernel[] = R"(
.version 6.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 unused, .param .u32 loops)
.maxntid 1024, 1, 1
{
  .reg .pred %p<3>;
  .reg .f32 %f<4>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [unused];
  ld.param.u32 %r1, [loops];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, 0;
  cvt.rn.f32.u32 %f1, %r2;
  mov.f32 %f2, 0f3F7FF972;
  mov.f32 %f3, 0f3F000000;
next:
  fma.rn.f32 %f1, %f1, %f2, %f3;
  add.u32 %r3, %r3, 1;
  and.b32 %r2, %r3, 31;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra next;
  add.u32 %r1, %r1, -1;
  setp.gt.s32 %p1, %r1, 0;
  @%p1 bra next;
  setp.lt.f32 %p2, %f1, 0f00000000;
  @%p2 st.volatile.global.f32 [%rd1], %f1;
  ret;
}
)";

std::string ErrorName(void* library, int error) {
  const char* name = nullptr;
  LookUp<int(int, const char**)>(library, "cuGetErrorName")(error, &name);
  return name == nullptr ? std::to_string(error) : name;
}

struct Kernel {
  void* function = nullptr;
  unsigned blocks = 1;
};

using LaunchFunction = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                           void**, void**);

class Queue final : public WorkQueue {
 public:
  Queue(const ProbedLibrary& driver, const Kernel& kernel)
      : driver_(driver),
        kernel_(kernel),
        launch_(driver.Find<LaunchFunction>("cuLaunchKernel")),
        record_(driver.Find<int(void*, void*)>("cuEventRecord")),
        wait_(driver.Find<int(void*)>("cuEventSynchronize")) {
    driver_.Call("cuStreamCreate", &stream_, kNonBlocking);
    for (void*& mark : marks_) driver_.Call("cuEventCreate", &mark, kNoTiming);
  }

  void Launch(uint32_t loops) override {
    uint64_t unused = 0;
    void* arguments[] = {&unused, &loops};
    driver_.Check("cuLaunchKernel", launch_(kernel_.function, kernel_.blocks, 1, 1, kThreads, 1, 1, 0,
                                            stream_, arguments, nullptr));
  }
  void LaunchMarked(uint32_t loops, size_t mark) override {
    Launch(loops);
    driver_.Check("cuEventRecord", record_(marks_[mark], stream_));
  }
  void Wait(size_t mark) override { driver_.Check("cuEventSynchronize", wait_(marks_[mark])); }
  void Finish() override { driver_.Call("cuStreamSynchronize", stream_); }

 private:
  const ProbedLibrary& driver_;
  const Kernel& kernel_;
  // Looked up once: a launch is measured.
  LaunchFunction* launch_;
  int (*record_)(void*, void*);
  int (*wait_)(void*);
  void* stream_ = nullptr;
  std::array<void*, kMarks> marks_{};
};

// Everything is given back when the process ends.
class Device final : public WorkDevice {
 public:
  Device() : driver_(kDriver, ErrorName) {
    driver_.Call("cuInit", 0u);
    driver_.Call("cuDeviceGet", &device_, 0);
    driver_.Call("cuDevicePrimaryCtxRetain", &context_, device_);
    EnterThread();
    void* module = nullptr;
    driver_.Call("cuModuleLoadData", &module, static_cast<const void*>(kKernel));
    driver_.Call("cuModuleGetFunction", &kernel_.function, module, "work");
    kernel_.blocks =
        Attribute(kMultiprocessors) * std::max(1u, Attribute(kThreadsPerMultiprocessor) / kThreads);
  }

  std::string Name() const override {
    char name[256] = "";
    driver_.Call("cuDeviceGetName", static_cast<char*>(name), int{sizeof name}, device_);
    return name;
  }
  std::unique_ptr<WorkQueue> NewQueue() override { return std::make_unique<Queue>(driver_, kernel_); }
  void EnterThread() const override { driver_.Call("cuCtxSetCurrent", context_); }

 private:
  unsigned Attribute(int which) const {
    int value = 0;
    driver_.Call("cuDeviceGetAttribute", &value, which, device_);
    return static_cast<unsigned>(value);
  }

  ProbedLibrary driver_;
  int device_ = 0;
  void* context_ = nullptr;
  Kernel kernel_;
};

}  // namespace

std::unique_ptr<WorkDevice> OpenWorkDevice() { return std::make_unique<Device>(); }

}  // namespace xsched::cli::cuda
