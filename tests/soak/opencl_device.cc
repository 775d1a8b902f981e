// The soak test's client on OpenCL. Each command fills a buffer with its number. It does not use XSched's
// API.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "device.h"

namespace soak {
namespace {

constexpr size_t kBytes = 16384;

class OpenClDevice : public Device {
 public:
  explicit OpenClDevice(Page& page) : page_(page) {
    cl_platform_id platform;
    Check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    Check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id_, nullptr), "clGetDeviceIDs");
    cl_int error = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &error);
    Check(error, "clCreateContext");
    buffer_ = MakeBuffer();
    queue_ = MakeQueue();
  }
  ~OpenClDevice() override {
    clReleaseCommandQueue(queue_);
    clReleaseMemObject(buffer_);
    clReleaseContext(context_);
  }

  void Launch(uint32_t) override {
    ++launched_;
    cl_event event;
    Check(clEnqueueFillBuffer(queue_, buffer_, &launched_, sizeof launched_, 0, kBytes, 0, nullptr, &event),
          "clEnqueueFillBuffer");
    Check(clSetEventCallback(
              event, CL_COMPLETE, [](cl_event, cl_int, void* page) { ++static_cast<Page*>(page)->done; },
              &page_),
          "clSetEventCallback");
    Check(clReleaseEvent(event), "clReleaseEvent");
  }

  void Synchronize(uint32_t way) override {
    if (way == 0) Check(clFinish(queue_), "clFinish");
    Expect(queue_, buffer_, launched_);
  }

  void UseAnotherQueue() override {
    cl_command_queue other = MakeQueue();
    cl_mem buffer = MakeBuffer();
    for (cl_int i = 1; i <= 5; ++i)
      Check(clEnqueueFillBuffer(other, buffer, &i, sizeof i, 0, kBytes, 0, nullptr, nullptr),
            "clEnqueueFillBuffer");
    Expect(other, buffer, 5);
    clReleaseCommandQueue(other);
    clReleaseMemObject(buffer);
  }

  bool uses_processor() const override { return true; }

 private:
  cl_command_queue MakeQueue() {
    cl_int error = CL_SUCCESS;
    Making making(page_);
    cl_command_queue queue = clCreateCommandQueue(context_, id_, 0, &error);
    Check(error, "clCreateCommandQueue");
    return queue;
  }
  cl_mem MakeBuffer() {
    cl_int error = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(context_, CL_MEM_READ_WRITE, kBytes, nullptr, &error);
    Check(error, "clCreateBuffer");
    return buffer;
  }
  void Expect(cl_command_queue queue, cl_mem buffer, cl_int wanted) {
    cl_int got[kBytes / sizeof(cl_int)];
    Check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, kBytes, got, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    for (cl_int value : got) {
      if (value != wanted) Fail(page_, "what was filled", value, wanted);
    }
  }
  void Check(cl_int error, const char* what) {
    if (error != CL_SUCCESS) Fail(page_, what, error, CL_SUCCESS);
  }

  Page& page_;
  cl_device_id id_{};
  cl_context context_{};
  cl_mem buffer_{};
  cl_command_queue queue_{};
  cl_int launched_ = 0;
};

}  // namespace

std::unique_ptr<Device> OpenDevice(Page& page, const Options&) {
  return std::make_unique<OpenClDevice>(page);
}

}  // namespace soak
