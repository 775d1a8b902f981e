// HIP's part of device_probe.h.
#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/probe_child.h"
#include "cli/shims.h"

namespace xsched::cli {
namespace {

using hipError_t = int;
constexpr unsigned kNonBlocking = 1;

class Runtime {
 public:
  explicit Runtime(void* library) : library_(library) {}

  template <typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    if (hipError_t result = LookUp<hipError_t(Arguments...)>(library_, name)(arguments...); result != 0) {
      throw ProbeError{
          fmt::format("{}: {}", name, LookUp<const char*(hipError_t)>(library_, "hipGetErrorName")(result))};
    }
  }

 private:
  void* library_;
};

// A launch on a suspended stream must still wait a while later: HIP has no gates.
bool Stops(const Runtime& runtime, const ProbedQueue& queue, int ordinal, void* stream, void* memory) {
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

void TryStream(const Runtime& runtime, int ordinal, ProbedDevice& device) {
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

ProbedDevice ProbeDevice(const Runtime& runtime, int ordinal) {
  ProbedDevice device;
  try {
    char text[256] = "";
    runtime.Call("hipDeviceGetPCIBusId", static_cast<char*>(text), int{sizeof text}, ordinal);
    device.address = text;
    runtime.Call("hipDeviceGetName", static_cast<char*>(text), int{sizeof text}, ordinal);
    device.name = text;
    TryStream(runtime, ordinal, device);
  } catch (const ProbeError& error) {
    device.error = error.text;
  }
  return device;
}

}  // namespace

void ProbeHip(DeviceProbe& probe) {
  void* library = dlopen(FindHipRuntime().c_str(), RTLD_NOW);
  if (library == nullptr) throw ProbeError{dlerror()};
  const Runtime runtime(library);
  int version = 0;
  runtime.Call("hipRuntimeGetVersion", &version);
  probe.version = fmt::format("{}.{}", version / 10'000'000, version / 100'000 % 100);
  int count = 0;
  runtime.Call("hipGetDeviceCount", &count);
  for (int i = 0; i < count; ++i) probe.devices.push_back(ProbeDevice(runtime, i));
}

}  // namespace xsched::cli
