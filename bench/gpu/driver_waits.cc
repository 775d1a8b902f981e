// Which of the driver's calls wait for work on other streams of their context, natively.
// registry/cuda/functions.toml divides them by that into kinds: drain, barrier, memory.
//
// Each call is made while a kernel of 300 ms runs on a stream that has nothing to do with it. Prints one line
// of JSON per call: {"call": …, "ms": …, "waits": …}, or "error" in place of the last two. It does not use
// XSched.
#include <cuda.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "clock.h"
#include "device.h"

namespace xsched::bench {
namespace {

constexpr double kKernelUs = 300'000;
constexpr double kWaitsMs = 150;
constexpr size_t kBytes = 2 << 20;  // the granularity of memory that a program maps by itself

constexpr char kModule[] =
    ".version 6.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .global .align 4 .u32 word;\n"
    ".visible .entry first() { ret; }\n"
    ".visible .entry second() { ret; }\n";

// clang-format off
#define XSCHED_WAITS_CALLS(F) \
  F(cuMemHostRegister) F(cuMemHostUnregister) F(cuMemFree) F(cuMemFreeHost) F(cuMemAlloc) \
  F(cuMemHostAlloc) F(cuMemCreate) F(cuMemAddressReserve) F(cuMemMap) F(cuMemSetAccess) F(cuMemUnmap) \
  F(cuMemRelease) F(cuMemAddressFree) F(cuMemPoolCreate) F(cuMemPoolDestroy) F(cuMemPoolTrimTo) \
  F(cuMemAllocFromPoolAsync) F(cuMemFreeAsync) F(cuDeviceGraphMemTrim) F(cuModuleLoadData) \
  F(cuModuleUnload) F(cuModuleGetFunction) F(cuModuleGetGlobal) F(cuLibraryLoadData) \
  F(cuLibraryGetKernel) F(cuLibraryGetModule) F(cuLibraryGetGlobal) F(cuLibraryUnload) \
  F(cuKernelGetFunction) F(cuFuncLoad) F(cuGraphCreate) F(cuGraphAddKernelNode) \
  F(cuGraphInstantiateWithFlags) F(cuCtxSetLimit) F(cuCtxGetLimit) F(cuCtxResetPersistingL2Cache) \
  F(cuArrayCreate) F(cuArrayDestroy)
// clang-format on

#define XSCHED_WAITS_MEMBER(name) decltype(&::name) name##_ = driver_.Find<decltype(&::name)>(#name);

// A call, with what must be there before it.
struct Case {
  std::string call;
  std::function<void()> prepare;
  std::function<CUresult()> run;
};

class Waits {
 public:
  explicit Waits(const Device& device)
      : device_(device), driver_(device.driver()), busy_(device.NewStream()) {
    Check(driver_.cuDeviceGet(&number_, 0), "cuDeviceGet");
  }

  void Run() {
    for (const Case& one : Cases()) {
      nlohmann::ordered_json line{{"call", one.call}};
      try {
        if (one.prepare) one.prepare();
        device_.Synchronize(busy_);
        device_.Launch(busy_, device_.Loops(kKernelUs));
        const double begin = Seconds();
        const CUresult result = one.run();
        const double took_ms = (Seconds() - begin) * 1e3;
        Check(result, one.call.c_str());
        line["ms"] = std::round(took_ms * 1e3) / 1e3;
        line["waits"] = took_ms > kWaitsMs;
      } catch (const std::exception& error) {
        line["error"] = error.what();
      }
      printf("%s\n", line.dump().c_str());
      fflush(stdout);
    }
    device_.Synchronize(busy_);
  }

 private:
  void Check(CUresult result, const char* what) const { driver_.Check(result, what); }

  CUmemAllocationProp Properties() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = number_;
    return properties;
  }

  void NewModule() { Check(cuModuleLoadData_(&module_, kModule), "cuModuleLoadData"); }
  void NewLibrary() {
    Check(cuLibraryLoadData_(&library_, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cuLibraryLoadData");
  }
  void NewKernel() {
    NewLibrary();
    Check(cuLibraryGetKernel_(&kernel_, library_, "first"), "cuLibraryGetKernel");
  }
  void NewFunction() {
    NewModule();
    Check(cuModuleGetFunction_(&function_, module_, "first"), "cuModuleGetFunction");
  }
  void NewMapping() {
    const CUmemAllocationProp properties = Properties();
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    Check(cuMemCreate_(&memory_, kBytes, &properties, 0), "cuMemCreate");
    Check(cuMemAddressReserve_(&address_, kBytes, 0, 0, 0), "cuMemAddressReserve");
    Check(cuMemMap_(address_, kBytes, 0, memory_, 0), "cuMemMap");
    Check(cuMemSetAccess_(address_, kBytes, &access, 1), "cuMemSetAccess");
  }
  // A pool that keeps what was freed.
  void NewPool() {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = Properties().location;
    Check(cuMemPoolCreate_(&pool_, &properties), "cuMemPoolCreate");
    CUdeviceptr block;
    Check(cuMemAllocFromPoolAsync_(&block, kBytes, pool_, busy_), "cuMemAllocFromPoolAsync");
    Check(cuMemFreeAsync_(block, busy_), "cuMemFreeAsync");
  }
  void NewGraph() {
    NewFunction();
    Check(cuGraphCreate_(&graph_, 0), "cuGraphCreate");
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = function_;
    node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    CUgraphNode added;
    Check(cuGraphAddKernelNode_(&added, graph_, nullptr, 0, &node), "cuGraphAddKernelNode");
  }

  std::vector<Case> Cases() {
    std::vector<Case> cases = Memory();
    for (const Case& one : Code()) cases.push_back(one);
    for (const Case& one : Contexts()) cases.push_back(one);
    return cases;
  }

  std::vector<Case> Memory() {
    return {
        {"cuMemAlloc", nullptr, [this] { return cuMemAlloc_(&address_, kBytes); }},
        {"cuMemFree", nullptr, [this] { return cuMemFree_(address_); }},
        {"cuMemHostAlloc", nullptr, [this] { return cuMemHostAlloc_(&host_, kBytes, 0); }},
        {"cuMemFreeHost", nullptr, [this] { return cuMemFreeHost_(host_); }},
        {"cuMemHostRegister", [this] { buffer_.assign(kBytes, 0); },
         [this] { return cuMemHostRegister_(buffer_.data(), kBytes, 0); }},
        {"cuMemHostUnregister", nullptr, [this] { return cuMemHostUnregister_(buffer_.data()); }},
        {"cuArrayDestroy",
         [this] {
           const CUDA_ARRAY_DESCRIPTOR descriptor{64, 64, CU_AD_FORMAT_FLOAT, 1};
           Check(cuArrayCreate_(&array_, &descriptor), "cuArrayCreate");
         },
         [this] { return cuArrayDestroy_(array_); }},
        {"cuMemUnmap", [this] { NewMapping(); }, [this] { return cuMemUnmap_(address_, kBytes); }},
        {"cuMemAddressFree", nullptr, [this] { return cuMemAddressFree_(address_, kBytes); }},
        {"cuMemRelease", nullptr, [this] { return cuMemRelease_(memory_); }},
        {"cuMemPoolTrimTo", [this] { NewPool(); }, [this] { return cuMemPoolTrimTo_(pool_, 0); }},
        {"cuMemPoolDestroy", [this] { NewPool(); }, [this] { return cuMemPoolDestroy_(pool_); }},
        {"cuDeviceGraphMemTrim", nullptr, [this] { return cuDeviceGraphMemTrim_(number_); }},
    };
  }

  std::vector<Case> Code() {
    return {
        {"cuModuleLoadData", nullptr, [this] { return cuModuleLoadData_(&module_, kModule); }},
        {"cuModuleGetFunction", [this] { NewModule(); },
         [this] { return cuModuleGetFunction_(&function_, module_, "second"); }},
        {"cuFuncLoad", [this] { NewFunction(); }, [this] { return cuFuncLoad_(function_); }},
        {"cuModuleGetGlobal", [this] { NewModule(); },
         [this] { return cuModuleGetGlobal_(&address_, nullptr, module_, "word"); }},
        {"cuModuleUnload", nullptr, [this] { return cuModuleUnload_(module_); }},
        {"cuLibraryLoadData", nullptr,
         [this] { return cuLibraryLoadData_(&library_, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0); }},
        {"cuLibraryGetModule", [this] { NewLibrary(); },
         [this] { return cuLibraryGetModule_(&module_, library_); }},
        {"cuLibraryGetGlobal", [this] { NewLibrary(); },
         [this] { return cuLibraryGetGlobal_(&address_, nullptr, library_, "word"); }},
        {"cuKernelGetFunction", [this] { NewKernel(); },
         [this] { return cuKernelGetFunction_(&function_, kernel_); }},
        {"cuLibraryUnload", nullptr, [this] { return cuLibraryUnload_(library_); }},
        {"cuGraphInstantiateWithFlags", [this] { NewGraph(); },
         [this] { return cuGraphInstantiateWithFlags_(&executable_, graph_, 0); }},
    };
  }

  std::vector<Case> Contexts() {
    return {
        {"cuCtxSetLimit (a larger stack)",
         [this] { Check(cuCtxGetLimit_(&stack_, CU_LIMIT_STACK_SIZE), "cuCtxGetLimit"); },
         [this] { return cuCtxSetLimit_(CU_LIMIT_STACK_SIZE, 2 * stack_); }},
        {"cuCtxResetPersistingL2Cache", nullptr, [this] { return cuCtxResetPersistingL2Cache_(); }},
    };
  }

  const Device& device_;
  const Driver& driver_;
  XSCHED_WAITS_CALLS(XSCHED_WAITS_MEMBER)
#undef XSCHED_WAITS_MEMBER
#undef XSCHED_WAITS_CALLS

  CUstream busy_;
  CUdevice number_{};
  CUdeviceptr address_{};
  CUmemGenericAllocationHandle memory_{};
  CUmemoryPool pool_{};
  CUarray array_{};
  void* host_ = nullptr;
  std::vector<char> buffer_;
  CUmodule module_{};
  CUfunction function_{};
  CUlibrary library_{};
  CUkernel kernel_{};
  CUgraph graph_{};
  CUgraphExec executable_{};
  size_t stack_ = 0;
};

}  // namespace
}  // namespace xsched::bench

int main() try {
  xsched::bench::Device device;
  device.Use(device.Calibrate());
  xsched::bench::Waits(device).Run();
  return 0;
} catch (const std::exception& error) {
  fprintf(stderr, "driver_waits: %s\n", error.what());
  return 1;
}
