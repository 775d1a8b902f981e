// The soak test's client on the CUDA stand-in. Each kernel appends its number to a log. It does not use
// XSched's API.
#include <cuda.h>
#include <unistd.h>

#include <cstring>

#include "device.h"
#include "standin.h"

namespace soak {
namespace {

class CudaDevice : public Device {
 public:
  CudaDevice(Page& page, const Options& options)
      // Room for twice as many kernels of 1 ms as can run.
      : page_(page), room_(static_cast<int>((options.seconds + 60) * 2000)) {
    CUcontext context;
    CUmodule module;
    Check(cuInit(0), "cuInit");
    Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Check(cuModuleLoadData(&module, "any"), "cuModuleLoadData");
    Check(cuModuleGetFunction(&append_, module, "append_after"), "cuModuleGetFunction");
    Check(cuMemHostAlloc(reinterpret_cast<void**>(&log_), sizeof(int) * static_cast<size_t>(room_ + 1), 0),
          "cuMemHostAlloc");
    memset(log_, 0, sizeof(int) * static_cast<size_t>(room_ + 1));
    stream_ = MakeStream();
  }
  ~CudaDevice() override { Check(cuStreamDestroy(stream_), "cuStreamDestroy"); }

  void Launch(uint32_t microseconds) override {
    if (launched_ == room_) {
      usleep(1000);
      return;
    }
    ++launched_;
    Launch(stream_, microseconds, launched_);
  }

  void Synchronize(uint32_t way) override {
    if (way == 0) {
      Check(cuCtxSynchronize(), "cuCtxSynchronize");
    } else if (way == 1) {
      CUresult result;
      while ((result = cuStreamQuery(stream_)) == CUDA_ERROR_NOT_READY) usleep(1000);
      Check(result, "cuStreamQuery");
    } else {
      Check(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    }
    if (Logged() != launched_) Fail(page_, "kernels run", Logged(), launched_);
    for (; checked_ < launched_; ++checked_) {
      if (log_[1 + checked_] != checked_ + 1)
        Fail(page_, "order of kernels", log_[1 + checked_], checked_ + 1);
    }
  }

  // The other stream waits for the main one, and the main one for the other.
  void UseAnotherQueue() override {
    CUstream other = MakeStream();
    CUevent event;
    Check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    Check(cuEventRecord(event, stream_), "cuEventRecord");
    Check(cuStreamWaitEvent(other, event, 0), "cuStreamWaitEvent");
    ++launched_;
    Launch(other, 300, launched_);
    Check(cuEventRecord(event, other), "cuEventRecord");
    Check(cuStreamWaitEvent(stream_, event, 0), "cuStreamWaitEvent");
    Launch(300);
    Check(cuEventDestroy(event), "cuEventDestroy");
    Check(cuStreamDestroy(other), "cuStreamDestroy");
  }

  void Observe() override {
    page_.done += static_cast<uint64_t>(Logged() - counted_);
    counted_ = Logged();
    page_.slice_us = standin_timeslice(0);
    page_.on = static_cast<uint64_t>(standin_scheduled(0));
  }

 private:
  CUstream MakeStream() {
    CUstream stream;
    Making making(page_);
    Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return stream;
  }
  void Launch(CUstream stream, uint32_t microseconds, int number) {
    void* arguments[] = {&log_, &number, &microseconds};
    Check(cuLaunchKernel(append_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
  }
  int Logged() const { return __atomic_load_n(log_, __ATOMIC_ACQUIRE); }
  void Check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) Fail(page_, what, result, CUDA_SUCCESS);
  }

  Page& page_;
  const int room_;
  CUfunction append_ = nullptr;
  CUstream stream_ = nullptr;
  int* log_ = nullptr;  // the number of entries, and the entries
  int launched_ = 0;
  int checked_ = 0;
  int counted_ = 0;  // added to Page::done so far
};

}  // namespace

std::unique_ptr<Device> OpenDevice(Page& page, const Options& options) {
  return std::make_unique<CudaDevice>(page, options);
}

}  // namespace soak
