// Measures the cost of interception per call of the CUDA driver (bench/interception/cost.h), over the
// stand-in driver, which executes commands at once. Also counts heap allocations and threads that XSched
// adds.
//
//   cuda_launch_bench [--json FILE]
//
// Exit status 1: XSched allocated memory in a call.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "hal/cuda/cu.h"
#include "interception/cost.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"
#include "xsched/cuda/hal.h"
#include "xsched/xsched.h"

namespace {

using xsched::bench::Check;
using xsched::bench::Json;

constexpr CUstream kDefault = nullptr;

// The measured functions, of the driver or of the shim.
struct Driver {
  explicit Driver(void* library) {
    auto find = [library](auto& function, const char* name) {
      void* found = dlsym(library, name);
      if (found == nullptr) throw std::runtime_error(dlerror());
      std::memcpy(&function, &found, sizeof found);
    };
    find(launch, "cuLaunchKernel");
    find(copy, "cuMemcpyHtoDAsync_v2");
    find(record, "cuEventRecord");
    find(synchronize, "cuStreamSynchronize");
    find(create_event, "cuEventCreate");
    find(function_of, "cuKernelGetFunction");
    find(allocate, "cuMemAlloc_v2");
    find(free, "cuMemFree_v2");
    find(allocate_async, "cuMemAllocAsync");
    find(free_async, "cuMemFreeAsync");
  }
  decltype(&::cuLaunchKernel) launch;
  decltype(&::cuMemcpyHtoDAsync_v2) copy;
  decltype(&::cuEventRecord) record;
  decltype(&::cuStreamSynchronize) synchronize;
  decltype(&::cuEventCreate) create_event;
  decltype(&::cuKernelGetFunction) function_of;
  decltype(&::cuMemAlloc_v2) allocate;
  decltype(&::cuMemFree_v2) free;
  decltype(&::cuMemAllocAsync) allocate_async;
  decltype(&::cuMemFreeAsync) free_async;
};

void* Open(const char* library) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(dlerror());
  return opened;
}

class Program {
 public:
  Program() : library_(Open(XSCHED_BENCH_DRIVER)), native_(library_) {
    CUcontext context;
    CUmodule module;
    Check(Call<decltype(::cuInit)>("cuInit")(0), "cuInit");
    Check(Call<decltype(::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0), "retain");
    Check(Call<decltype(::cuCtxSetCurrent)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    Check(Call<decltype(::cuModuleLoadData)>("cuModuleLoadData")(&module, "any"), "cuModuleLoadData");
    Check(Call<decltype(::cuModuleGetFunction)>("cuModuleGetFunction")(&kernel_, module, "nop"), "nop");
    Check(Call<decltype(::cuMemAlloc_v2)>("cuMemAlloc_v2")(&memory_, 64), "cuMemAlloc");
    CUlibrary code = nullptr;
    Check(Call<decltype(::cuLibraryLoadData)>("cuLibraryLoadData")(&code, "any", nullptr, nullptr, 0, nullptr,
                                                                   nullptr, 0),
          "cuLibraryLoadData");
    Check(Call<decltype(::cuLibraryGetKernel)>("cuLibraryGetKernel")(&library_kernel_, code, "nop"),
          "cuLibraryGetKernel");
    stream_ = NewStream();
  }

  Json Measure(bool competitor) {
    const int64_t threads = xsched::bench::Threads();
    Driver shim(Open(XSCHED_BENCH_SHIM));
    const char* const ours[] = {"libshimcuda.so", "libhalcuda.so", "libpreempt.so"};
    xsched::bench::CountAllocationsOf(ours);
    Check(shim.create_event(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    Check(Launch(shim, stream_), "cuLaunchKernel");
    Check(Launch(shim, kDefault), "cuLaunchKernel");
    if (xsched::bench::Allocations() == 0)
      throw std::runtime_error("an event was made without a record: nothing is counted");
    if (competitor) AddCompetitor(shim);
    Json result;
    auto measure = [&](const char* name, auto&& call) {
      result["calls"].push_back(xsched::bench::Compare(
          name, [&] { return call(native_); }, [&] { return call(shim); }, [&] { Settle(shim); }));
    };
    measure("cuLaunchKernel", [this](const Driver& d) { return Launch(d, stream_); });
    measure("cuLaunchKernel, default stream", [this](const Driver& d) { return Launch(d, kDefault); });
    // All that an operator of PyTorch without a graph asks of the driver: x.add_(0) makes these calls
    // (PyTorch 2.11, CUDA 13.0).
    auto* const get_device = Call<decltype(::cuCtxGetDevice)>("cuCtxGetDevice");
    auto* const get_state = Call<decltype(::cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState");
    measure("eager operator", [=, this](const Driver& d) {
      CUdevice device = 0;
      unsigned flags = 0;
      int active = 0;
      for (int i = 0; i < 3; ++i) Check(get_device(&device), "cuCtxGetDevice");
      Check(get_state(device, &flags, &active), "cuDevicePrimaryCtxGetState");
      return Launch(d, kDefault);
    });
    int value = 0;
    measure("cuMemcpyHtoDAsync", [&](const Driver& d) { return d.copy(memory_, &value, 4, stream_); });
    measure("cuEventRecord", [this](const Driver& d) { return d.record(event_, stream_); });
    measure("cuStreamSynchronize", [this](const Driver& d) { return d.synchronize(stream_); });
    measure("cuLaunchKernel, cuStreamSynchronize", [this](const Driver& d) {
      const CUresult launched = Launch(d, stream_);
      return launched != CUDA_SUCCESS ? launched : d.synchronize(stream_);
    });
    // The queries that libraries such as cuDNN make before each launch, and calls that wait for everything.
    CUfunction function = nullptr;
    measure("cuKernelGetFunction",
            [&](const Driver& d) { return d.function_of(&function, library_kernel_); });
    CUdeviceptr memory = 0;
    measure("cuMemAlloc, cuMemFree", [&](const Driver& d) {
      const CUresult allocated = d.allocate(&memory, 64);
      return allocated != CUDA_SUCCESS ? allocated : d.free(memory);
    });
    measure("cuMemAllocAsync, cuMemFreeAsync", [&](const Driver& d) {
      const CUresult allocated = d.allocate_async(&memory, 64, stream_);
      return allocated != CUDA_SUCCESS ? allocated : d.free_async(memory, stream_);
    });
    result["threads"] = xsched::bench::Threads() - threads;
    std::printf("  %-36s %8lld\n", "threads added", result["threads"].get<long long>());
    return result;
  }

 private:
  template <typename Function>
  Function* Call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  CUstream NewStream() const {
    CUstream stream = nullptr;
    Check(Call<decltype(::cuStreamCreate)>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
    return stream;
  }

  CUresult Launch(const Driver& driver, CUstream stream) const {
    return driver.launch(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }

  // From now on the other streams may be held at any time.
  void AddCompetitor(const Driver& shim) const {
    CUstream other = NewStream();
    HwQueueHandle hwq = 0;
    XQueueHandle queue = 0;
    Check(Launch(shim, other), "cuLaunchKernel");
    Check(CudaQueueGet(&hwq, other), "CudaQueueGet");
    Check(XQueueGet(&queue, hwq), "XQueueGet");
    Check(XHintPriority(queue, PRIORITY_MAX), "XHintPriority");
    Check(shim.synchronize(other), "cuStreamSynchronize");
  }

  void Settle(const Driver& shim) const {
    Check(shim.synchronize(stream_), "cuStreamSynchronize");
    Check(shim.synchronize(kDefault), "cuStreamSynchronize");
  }

  void* library_;
  Driver native_;
  CUstream stream_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUkernel library_kernel_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUevent event_ = nullptr;
};

Json Run(const char* auto_xqueue, bool competitor) {
  setenv("STANDIN_CUDA_IMMEDIATE", "1", 1);
  setenv("XSCHED_SCHEDULER", "LCL", 1);
  setenv("XSCHED_AUTO_XQUEUE", auto_xqueue, 1);
  return Program().Measure(competitor);
}

// Under a server that limits the memory of the program's tenant, to which so many other processes belong as
// well.
Json RunAsTenant(int others) {
  const xsched::server::testing::TempFolder folder;
  const std::string rules = folder.path() + "/tenants.toml";
  std::ofstream(rules) << "[default]\nmemory = '512MiB'\n";
  const xsched::server::testing::ServerProcess server(XSERVER_PROGRAM, folder.path() + "/s",
                                                      {"--user", "--tenants", rules});
  std::vector<xsched::server::testing::TestAgent> agents;
  for (int i = 0; i < others; ++i) agents.emplace_back(server.socket());
  setenv("XSCHED_SOCKET", server.socket().text, 1);
  setenv("STANDIN_CUDA_IMMEDIATE", "1", 1);
  setenv("XSCHED_SCHEDULER", "GLB", 1);
  setenv("XSCHED_AUTO_XQUEUE", "OFF", 1);
  return Program().Measure(false);
}

}  // namespace

int main(int argc, char** argv) {
  return xsched::bench::RunCases(
      {{"unscheduled", [] { return Run("OFF", false); }},
       {"unscheduled, with a limit of memory",
        [] {
          setenv("XSCHED_MEMORY", "512MiB", 1);
          return Run("OFF", false);
        }},
       {"unscheduled, with a limit of the tenant's memory", [] { return RunAsTenant(0); }},
       {"unscheduled, with a limit of the memory of a tenant with 20 processes",
        [] { return RunAsTenant(19); }},
       {"scheduled, alone", [] { return Run("ON", false); }},
       {"scheduled, with a more urgent competitor", [] { return Run("ON", true); }}},
      argc, argv);
}
