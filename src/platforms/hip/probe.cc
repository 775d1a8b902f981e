#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "cli/doctor/probed_library.h"
#include "platforms/hip/doctor.h"

namespace xsched::cli::hip {
namespace {

constexpr unsigned kNonBlocking = 1;

std::string ErrorName(void* library, int error) {
  return LookUp<const char*(int)>(library, "hipGetErrorName")(error);
}

// A launch on a suspended stream must still wait a while later, because HIP has no gates.
bool Stops(const ProbedLibrary& runtime, const ProbedQueue& queue, int ordinal, void* stream, void* memory) {
  queue.Suspend();
  std::future<void> launch = std::async(std::launch::async, [&] {
    runtime.Call("hipSetDevice", ordinal);
    runtime.Call("hipMemsetAsync", memory, 2, size_t{4}, stream);
  });
  const bool held = launch.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout;
  queue.Resume();
  launch.get();
  runtime.Call("hipStreamSynchronize", stream);
  return held;
}

void TryStream(const ProbedLibrary& runtime, int ordinal, ProbedDevice& device) {
  void* stream = nullptr;
  void* memory = nullptr;
  runtime.Call("hipSetDevice", ordinal);
  runtime.Call("hipStreamCreateWithFlags", &stream, kNonBlocking);
  runtime.Call("hipMalloc", &memory, size_t{4});
  runtime.Call("hipMemsetAsync", memory, 1, size_t{4}, stream);
  runtime.Call("hipStreamSynchronize", stream);

  const ProbedQueue queue("libhalhip.so.2", "HipQueueGet", stream);
  device.scheduled = queue.exists();
  if (!device.scheduled) return;
  char why_no_more[512] = "";
  const int tried = LookUp<int(char*, size_t)>(queue.hal(), "HipTryLevels")(why_no_more, sizeof why_no_more);
  device.level = std::min(queue.SetHighestLevel(), tried);
  device.why_no_more = why_no_more;
  queue.SetLevel(kPreemptLevelBlock);
  device.stops = Stops(runtime, queue, ordinal, stream, memory);
}

void ProbeDevice(const ProbedLibrary& runtime, int ordinal, ProbedDevice& device) {
  device.address = runtime.Text("hipDeviceGetPCIBusId", ordinal);
  device.name = runtime.Text("hipDeviceGetName", ordinal);
  TryStream(runtime, ordinal, device);
}

}  // namespace

void Probe(DeviceProbe& probe) {
  const ProbedLibrary runtime(FindRuntime(), ErrorName);
  int version = 0;
  runtime.Call("hipRuntimeGetVersion", &version);
  probe.version = fmt::format("{}.{}", version / 10'000'000, version / 100'000 % 100);
  int count = 0;
  runtime.Call("hipGetDeviceCount", &count);
  probe.devices =
      ProbeEach(count, [&](int number, ProbedDevice& device) { ProbeDevice(runtime, number, device); });
}

}  // namespace xsched::cli::hip
