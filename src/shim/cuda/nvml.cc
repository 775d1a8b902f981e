#include "shim/cuda/nvml.h"

#include <dlfcn.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "base/libraries.h"
#include "base/pci_address.h"
#include "preempt/api/memory.h"

namespace xsched::cuda {
namespace {

// NVML's binary interface, as far as it is needed here.
constexpr int kSuccess = 0;
constexpr int kFunctionNotFound = 13;
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct PciInfo {
  char former_bus_id[16];
  unsigned domain, bus, device;
  unsigned ids[2];
  char bus_id[32];
};
using GetMemory = int (*)(void* device, Memory* out);
using GetMemoryV2 = int (*)(void* device, MemoryV2* out);
using GetPciInfo = int (*)(void* device, PciInfo* out);

constexpr char kName[] = "nvmlDeviceGetMemoryInfo";
constexpr char kNameV2[] = "nvmlDeviceGetMemoryInfo_v2";
constexpr char kPciName[] = "nvmlDeviceGetPciInfo_v3";

std::atomic<GetMemory> get_memory{nullptr};
std::atomic<GetMemoryV2> get_memory_v2{nullptr};
std::atomic<GetPciInfo> get_pci_info{nullptr};

// Where a program is linked to NVML, it is in the global scope, behind us. Where it has opened it and asks
// for it there, it was found then.
template <typename Function>
Function Real(std::atomic<Function>& known, const char* name) {
  Function function = known.load(std::memory_order_acquire);
  if (function != nullptr) return function;
  function = reinterpret_cast<Function>(shim::RealDlsym(RTLD_NEXT, name));
  if (function == nullptr) {
    void* library = OpenLibrary("libnvidia-ml.so.1").KeepForGood();
    if (library != nullptr) function = reinterpret_cast<Function>(shim::RealDlsym(library, name));
  }
  if (function != nullptr) known.store(function, std::memory_order_release);
  return function;
}

// What the limit makes of `total` and `free`. False: nothing.
bool Limit(void* device, unsigned long long& total, unsigned long long& free) {
  if (!preempt::MemoryIsCounted()) return false;
  PciInfo address{};
  const GetPciInfo ask = Real(get_pci_info, kPciName);
  if (ask == nullptr || ask(device, &address) != kSuccess) return false;
  const int number = preempt::LimitedDevice(
      MakeDevice(kDeviceTypeGPU, PciAddress(address.domain, address.bus, address.device, 0)));
  if (number < 0) return false;
  const preempt::MemoryState state = preempt::MemoryOf(number);
  total = std::min<unsigned long long>(total, state.limit);
  free = std::min<unsigned long long>(free, state.left);
  return true;
}

}  // namespace
}  // namespace xsched::cuda

using namespace xsched::cuda;

extern "C" {

__attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo(void* device, Memory* out) {
  const GetMemory next = Real(get_memory, kName);
  if (next == nullptr) return kFunctionNotFound;
  const int result = next(device, out);
  if (result == kSuccess && out != nullptr && Limit(device, out->total, out->free))
    out->used = out->total - std::min(out->free, out->total);
  return result;
}

__attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* out) {
  const GetMemoryV2 next = Real(get_memory_v2, kNameV2);
  if (next == nullptr) return kFunctionNotFound;
  const int result = next(device, out);
  if (result == kSuccess && out != nullptr && Limit(device, out->total, out->free)) {
    out->reserved = 0;  // the limit has nothing for the driver itself
    out->used = out->total - std::min(out->free, out->total);
  }
  return result;
}

}  // extern "C"

namespace xsched::cuda {

shim::Lookup LookUpNvml(void* handle, const char* name, const void* caller) {
  constexpr shim::Lookup kNotOurs{};
  const bool is_v2 = strcmp(name, kNameV2) == 0;
  if (!is_v2 && strcmp(name, kName) != 0) return kNotOurs;
  void* const ours = is_v2 ? reinterpret_cast<void*>(&nvmlDeviceGetMemoryInfo_v2)
                           : reinterpret_cast<void*>(&nvmlDeviceGetMemoryInfo);
  void* found = shim::DlsymBehind(ours, handle, name, caller);
  if (found == nullptr) return {nullptr, 1};
  if (is_v2) {
    get_memory_v2.store(reinterpret_cast<GetMemoryV2>(found), std::memory_order_release);
  } else {
    get_memory.store(reinterpret_cast<GetMemory>(found), std::memory_order_release);
  }
  if (void* pci = shim::DlsymBehind(nullptr, handle, kPciName, caller))
    get_pci_info.store(reinterpret_cast<GetPciInfo>(pci), std::memory_order_release);
  return {ours, 1};
}

}  // namespace xsched::cuda
