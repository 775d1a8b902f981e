#include <chrono>
#include <thread>

#include "cli/doctor/probed_library.h"
#include "platforms/cuda/doctor.h"

namespace xsched::cli::cuda {
namespace {

using CUdevice = int;
constexpr int kNotReady = 600;
constexpr int kCanUse64BitMemoryOperations = 122;
constexpr unsigned kNonBlocking = 1;

std::string ErrorName(void* library, int error) {
  const char* name = nullptr;
  LookUp<int(int, const char**)>(library, "cuGetErrorName")(error, &name);
  return name == nullptr ? std::to_string(error) : name;
}

// Work on a suspended stream must still be unfinished a while later.
bool Stops(const ProbedLibrary& driver, const ProbedQueue& queue, void* stream, uint64_t memory) {
  queue.Suspend();
  driver.Call("cuMemsetD32Async", memory, 2u, size_t{1}, stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  bool held = driver.Try("cuStreamQuery", stream) == kNotReady;
  queue.Resume();
  driver.Call("cuStreamSynchronize", stream);
  return held;
}

void TryStream(const ProbedLibrary& driver, CUdevice handle, ProbedDevice& device) {
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
  // This tests gates. A hard stop would also stop the work.
  queue.SetLevel(kPreemptLevelDeactivate);
  device.stops = Stops(driver, queue, stream, memory);
  if (device.stops) return;
  int can = 0;
  driver.Call("cuDeviceGetAttribute", &can, kCanUse64BitMemoryOperations, handle);
  if (can == 0) device.why_no_more = "it has no stream memory operations of 64 bits";
}

void ProbeDevice(const ProbedLibrary& driver, int ordinal, ProbedDevice& device) {
  CUdevice handle = 0;
  driver.Call("cuDeviceGet", &handle, ordinal);
  device.address = driver.Text("cuDeviceGetPCIBusId", handle);
  device.name = driver.Text("cuDeviceGetName", handle);
  TryStream(driver, handle, device);
}

}  // namespace

void Probe(DeviceProbe& probe) {
  const ProbedLibrary driver(kDriver, ErrorName);
  int version = 0;
  driver.Call("cuDriverGetVersion", &version);
  probe.version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  driver.Call("cuInit", 0u);
  int count = 0;
  driver.Call("cuDeviceGetCount", &count);
  probe.devices =
      ProbeEach(count, [&](int number, ProbedDevice& device) { ProbeDevice(driver, number, device); });
}

}  // namespace xsched::cli::cuda
