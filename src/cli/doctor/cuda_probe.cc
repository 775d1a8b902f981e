// CUDA's part of device_probe.h.
#include <chrono>
#include <thread>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/probe_child.h"

namespace xsched::cli {
namespace {

using CUresult = int;
using CUdevice = int;
constexpr CUresult kNotReady = 600;
constexpr int kCanUse64BitMemoryOperations = 122;
constexpr unsigned kNonBlocking = 1;

class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  template <typename... Arguments>
  CUresult Try(const char* name, Arguments... arguments) const {
    return LookUp<CUresult(Arguments...)>(library_, name)(arguments...);
  }
  template <typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    if (CUresult result = Try(name, arguments...); result != 0) {
      const char* error = nullptr;
      Try("cuGetErrorName", result, &error);
      throw ProbeError{fmt::format("{}: {}", name, error == nullptr ? std::to_string(result) : error)};
    }
  }

 private:
  void* library_;
};

// What is put on a suspended stream must still be there a while later.
bool Stops(const Driver& driver, const ProbedQueue& queue, void* stream, uint64_t memory) {
  queue.Suspend();
  driver.Call("cuMemsetD32Async", memory, 2u, size_t{1}, stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bool held = driver.Try("cuStreamQuery", stream) == kNotReady;
  queue.Resume();
  driver.Call("cuStreamSynchronize", stream);
  return held;
}

void TryStream(const Driver& driver, CUdevice handle, ProbedDevice& device) {
  void* context = nullptr;
  driver.Call("cuDevicePrimaryCtxRetain", &context, handle);
  driver.Call("cuCtxSetCurrent", context);
  void* stream = nullptr;
  uint64_t memory = 0;
  driver.Call("cuStreamCreate", &stream, kNonBlocking);
  driver.Call("cuMemAlloc_v2", &memory, size_t{4});
  driver.Call("cuMemsetD32Async", memory, 1u, size_t{1}, stream);
  driver.Call("cuStreamSynchronize", stream);

  const ProbedQueue queue("libhalcuda.so.2", "CudaQueueGet", stream);
  device.scheduled = queue.exists();
  if (!device.scheduled) return;
  device.level = queue.SetHighestLevel();
  char why_no_more[512] = "";
  LookUp<void(char*, size_t)>(queue.hal(), "CudaExplainLevel3")(why_no_more, sizeof why_no_more);
  device.why_no_more = why_no_more;
  // By gates; a hard stop would stop them, too.
  queue.SetLevel(kPreemptLevelDeactivate);
  device.stops = Stops(driver, queue, stream, memory);
  if (device.stops) return;
  int can = 0;
  driver.Call("cuDeviceGetAttribute", &can, kCanUse64BitMemoryOperations, handle);
  if (can == 0) device.why_no_more = "it has no stream memory operations of 64 bits";
}

ProbedDevice ProbeDevice(const Driver& driver, int ordinal) {
  ProbedDevice device;
  try {
    CUdevice handle = 0;
    char text[256] = "";
    driver.Call("cuDeviceGet", &handle, ordinal);
    driver.Call("cuDeviceGetPCIBusId", static_cast<char*>(text), int{sizeof text}, handle);
    device.address = text;
    driver.Call("cuDeviceGetName", static_cast<char*>(text), int{sizeof text}, handle);
    device.name = text;
    TryStream(driver, handle, device);
  } catch (const ProbeError& error) {
    device.error = error.text;
  }
  return device;
}

}  // namespace

void ProbeCuda(DeviceProbe& probe) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) throw ProbeError{dlerror()};
  const Driver driver(library);
  int version = 0;
  driver.Call("cuDriverGetVersion", &version);
  probe.version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  driver.Call("cuInit", 0u);
  int count = 0;
  driver.Call("cuDeviceGetCount", &count);
  for (int i = 0; i < count; ++i) probe.devices.push_back(ProbeDevice(driver, i));
}

}  // namespace xsched::cli
