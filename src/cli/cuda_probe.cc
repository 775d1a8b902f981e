#include "cli/cuda_probe.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/child_process.h"
#include "cli/json_text.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

using nlohmann::json;

// Of cuda.h, which is not needed to build the tools.
using CUresult = int;
using CUdevice = int;
constexpr CUresult kNotReady = 600;
constexpr int kCanUse64BitMemoryOperations = 122;
constexpr unsigned kNonBlocking = 1;

struct DriverError {
  std::string text;
};

// A function of a library that is loaded; made by its name where it is called.
template <typename Function>
Function* Lookup(void* library, const char* name) {
  auto* function = library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw DriverError{fmt::format("{} is missing", name)};
  return function;
}

class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  template <typename... Arguments>
  CUresult Try(const char* name, Arguments... arguments) const {
    return Lookup<CUresult(Arguments...)>(library_, name)(arguments...);
  }
  template <typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    if (CUresult result = Try(name, arguments...); result != 0) {
      const char* error = nullptr;
      Try("cuGetErrorName", result, &error);
      throw DriverError{fmt::format("{}: {}", name, error == nullptr ? std::to_string(result) : error)};
    }
  }

 private:
  void* library_;
};

// The XQueue that the shim has made over `stream`. 0: none.
XQueueHandle XQueueOf(void* hal, void* preempt, void* stream) {
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  if (Lookup<XResult(HwQueueHandle*, void*)>(hal, "CudaQueueGet")(&hwq, stream) != kXSchedSuccess) return 0;
  Lookup<XResult(XQueueHandle*, HwQueueHandle)>(preempt, "XQueueGet")(&xqueue, hwq);
  return xqueue;
}

// What is put on a suspended stream must still be there a while later.
bool Stops(const Driver& driver, void* preempt, XQueueHandle xqueue, void* stream, uint64_t memory) {
  Lookup<XResult(XQueueHandle, int64_t)>(preempt, "XQueueSuspend")(xqueue, kQueueSuspendFlagNone);
  driver.Call("cuMemsetD32Async", memory, 2u, size_t{1}, stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bool held = driver.Try("cuStreamQuery", stream) == kNotReady;
  Lookup<XResult(XQueueHandle, int64_t)>(preempt, "XQueueResume")(xqueue, kQueueResumeFlagNone);
  driver.Call("cuStreamSynchronize", stream);
  return held;
}

// REQUIRES: the device's context is current.
void TryLevels(const Driver& driver, json& device) {
  void* stream = nullptr;
  uint64_t memory = 0;
  driver.Call("cuStreamCreate", &stream, kNonBlocking);
  driver.Call("cuMemAlloc_v2", &memory, size_t{4});
  driver.Call("cuMemsetD32Async", memory, 1u, size_t{1}, stream);
  driver.Call("cuStreamSynchronize", stream);

  void* hal = dlopen("libhalcuda.so.2", RTLD_NOW | RTLD_NOLOAD);
  void* preempt = dlopen("libpreempt.so.2", RTLD_NOW | RTLD_NOLOAD);
  XQueueHandle xqueue = hal == nullptr || preempt == nullptr ? 0 : XQueueOf(hal, preempt, stream);
  if (xqueue == 0) return;
  device["scheduled"] = true;
  auto* set_level = Lookup<XResult(XQueueHandle, int64_t)>(preempt, "XQueueSetPreemptLevel");
  device["interrupts"] = set_level(xqueue, kPreemptLevelInterrupt) == kXSchedSuccess;
  char why_not[512] = "";
  Lookup<void(char*, size_t)>(hal, "CudaExplainLevel3")(why_not, sizeof why_not);
  device["why_not"] = why_not;
  set_level(xqueue, kPreemptLevelDeactivate);
  device["stops"] = Stops(driver, preempt, xqueue, stream, memory);
}

json ProbeDevice(const Driver& driver, int ordinal) {
  json device = {{"address", ""},      {"name", ""},     {"error", ""},         {"writes_64_bits", false},
                 {"scheduled", false}, {"stops", false}, {"interrupts", false}, {"why_not", ""}};
  try {
    CUdevice handle = 0;
    char text[256] = "";
    driver.Call("cuDeviceGet", &handle, ordinal);
    driver.Call("cuDeviceGetPCIBusId", static_cast<char*>(text), int{sizeof text}, handle);
    device["address"] = text;
    driver.Call("cuDeviceGetName", static_cast<char*>(text), int{sizeof text}, handle);
    device["name"] = text;
    int writes = 0;
    driver.Call("cuDeviceGetAttribute", &writes, kCanUse64BitMemoryOperations, handle);
    device["writes_64_bits"] = writes != 0;
    void* context = nullptr;
    driver.Call("cuDevicePrimaryCtxRetain", &context, handle);
    driver.Call("cuCtxSetCurrent", context);
    TryLevels(driver, device);
  } catch (const DriverError& error) {
    device["error"] = error.text;
  }
  return device;
}

}  // namespace

std::string AnswerCudaProbe() {
  json answer = {{"version", ""}, {"error", ""}, {"devices", json::array()}};
  try {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw DriverError{dlerror()};
    Driver driver(library);
    int version = 0;
    driver.Call("cuDriverGetVersion", &version);
    answer["version"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    driver.Call("cuInit", 0u);
    int count = 0;
    driver.Call("cuDeviceGetCount", &count);
    for (int i = 0; i < count; ++i) answer["devices"].push_back(ProbeDevice(driver, i));
  } catch (const DriverError& error) {
    answer["error"] = error.text;
  }
  return JsonText(answer, -1) + "\n";
}

CudaProbe ProbeCuda(const std::string& shim) {
  std::error_code none;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", none).string();
  LaunchOptions options;
  options.scheduler = "APP";
  const Shims shims{.opencl = "", .cuda = shim};
  const json answer = json::parse(
      OutputOf({self, "doctor", "--probe-cuda"}, LaunchEnvironment(options, shims, CurrentVariable)), nullptr,
      /*allow_exceptions=*/false);
  CudaProbe probe;
  if (answer.is_discarded()) {
    probe.error = "CUDA crashed or hung while a stream of each GPU was tried";
    return probe;
  }
  probe.version = answer["version"];
  probe.error = answer["error"];
  for (const json& device : answer["devices"]) {
    probe.devices.push_back({.address = device["address"],
                             .name = device["name"],
                             .error = device["error"],
                             .scheduled = device["scheduled"],
                             .stops = device["stops"],
                             .interrupts = device["interrupts"],
                             .why_not = device["why_not"],
                             .writes_64_bits = device["writes_64_bits"]});
  }
  return probe;
}

}  // namespace xsched::cli
