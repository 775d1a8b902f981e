// The programs of `xsched calibrate` on the first OpenCL device. The loader is found as programs find it.
#include "platforms/opencl/work_device.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "cli/doctor/probed_library.h"
#include "platforms/opencl/doctor.h"

namespace xsched::cli::opencl {
namespace {

// Enough work-groups to occupy every core of a CPU.
constexpr size_t kItems = 32768;
constexpr size_t kGroup = 64;

constexpr const char* kSource = R"(
__kernel void work(__global float* data, uint loops) {
  size_t i = get_global_id(0);
  float x = data[i];
  for (uint k = 0; k < loops; ++k) x = x * 0.9999f + 0.5f;
  data[i] = x;
}
)";

std::string ErrorName(void*, int error) { return fmt::format("OpenCL error {}", error); }

// The functions by their names.
#define XSCHED_FUNCTION(name) decltype(::name)* name = loader.Find<decltype(::name)>(#name)
struct Functions {
  explicit Functions(const ProbedLibrary& from) : loader(from) {}
  const ProbedLibrary& loader;
  XSCHED_FUNCTION(clGetPlatformIDs);
  XSCHED_FUNCTION(clGetDeviceIDs);
  XSCHED_FUNCTION(clGetDeviceInfo);
  XSCHED_FUNCTION(clGetPlatformInfo);
  XSCHED_FUNCTION(clCreateContext);
  XSCHED_FUNCTION(clCreateCommandQueue);
  XSCHED_FUNCTION(clCreateProgramWithSource);
  XSCHED_FUNCTION(clBuildProgram);
  XSCHED_FUNCTION(clCreateKernel);
  XSCHED_FUNCTION(clCreateBuffer);
  XSCHED_FUNCTION(clSetKernelArg);
  XSCHED_FUNCTION(clEnqueueNDRangeKernel);
  XSCHED_FUNCTION(clWaitForEvents);
  XSCHED_FUNCTION(clReleaseEvent);
  XSCHED_FUNCTION(clFlush);
  XSCHED_FUNCTION(clFinish);
};
#undef XSCHED_FUNCTION

// What was made with the device's context.
struct Made {
  cl_device_id device{};
  cl_context context{};
  cl_program program{};
};

class Queue final : public WorkQueue {
 public:
  Queue(const Functions& cl, const Made& made) : cl_(cl) {
    cl_int error;
    queue_ = cl_.clCreateCommandQueue(made.context, made.device, 0, &error);
    cl_.loader.Check("clCreateCommandQueue", error);
    // Arguments belong to a kernel, and the queues have threads of their own.
    kernel_ = cl_.clCreateKernel(made.program, "work", &error);
    cl_.loader.Check("clCreateKernel", error);
    std::vector<float> zeros(kItems, 0.0f);
    cl_mem data = cl_.clCreateBuffer(made.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                     kItems * sizeof(float), zeros.data(), &error);
    cl_.loader.Check("clCreateBuffer", error);
    cl_.loader.Check("clSetKernelArg", cl_.clSetKernelArg(kernel_, 0, sizeof(cl_mem), &data));
  }

  void Launch(uint32_t loops) override { Enqueue(loops, nullptr); }
  void LaunchMarked(uint32_t loops, size_t mark) override {
    Enqueue(loops, &marks_[mark]);
    cl_.loader.Check("clFlush", cl_.clFlush(queue_));
  }
  void Wait(size_t mark) override {
    cl_.loader.Check("clWaitForEvents", cl_.clWaitForEvents(1, &marks_[mark]));
    cl_.loader.Check("clReleaseEvent", cl_.clReleaseEvent(marks_[mark]));
  }
  void Finish() override { cl_.loader.Check("clFinish", cl_.clFinish(queue_)); }

 private:
  void Enqueue(uint32_t loops, cl_event* event) {
    if (loops != loops_)
      cl_.loader.Check("clSetKernelArg", cl_.clSetKernelArg(kernel_, 1, sizeof loops, &loops));
    loops_ = loops;
    cl_.loader.Check(
        "clEnqueueNDRangeKernel",
        cl_.clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &kItems, &kGroup, 0, nullptr, event));
  }

  const Functions& cl_;
  cl_command_queue queue_{};
  cl_kernel kernel_{};
  uint32_t loops_ = 0;
  std::array<cl_event, kMarks> marks_{};
};

// Everything is given back when the process ends.
class Device final : public WorkDevice {
 public:
  Device() {
    cl_.loader.Check("clGetPlatformIDs (is an OpenCL driver installed?)",
                     cl_.clGetPlatformIDs(1, &platform_, nullptr));
    cl_.loader.Check("clGetDeviceIDs",
                     cl_.clGetDeviceIDs(platform_, CL_DEVICE_TYPE_ALL, 1, &made_.device, nullptr));
    cl_int error;
    made_.context = cl_.clCreateContext(nullptr, 1, &made_.device, nullptr, nullptr, &error);
    cl_.loader.Check("clCreateContext", error);
    const char* source = kSource;
    made_.program = cl_.clCreateProgramWithSource(made_.context, 1, &source, nullptr, &error);
    cl_.loader.Check("clCreateProgramWithSource", error);
    cl_.loader.Check("clBuildProgram",
                     cl_.clBuildProgram(made_.program, 1, &made_.device, "", nullptr, nullptr));
  }

  std::string Name() const override {
    char platform[256] = "";
    char device[256] = "";
    cl_.clGetPlatformInfo(platform_, CL_PLATFORM_NAME, sizeof platform, platform, nullptr);
    cl_.clGetDeviceInfo(made_.device, CL_DEVICE_NAME, sizeof device, device, nullptr);
    return fmt::format("{}, {}", device, platform);
  }
  std::unique_ptr<WorkQueue> NewQueue() override { return std::make_unique<Queue>(cl_, made_); }

 private:
  ProbedLibrary loader_{kLoader, ErrorName};
  Functions cl_{loader_};
  cl_platform_id platform_{};
  Made made_;
};

}  // namespace

std::unique_ptr<WorkDevice> OpenWorkDevice() { return std::make_unique<Device>(); }

}  // namespace xsched::cli::opencl
