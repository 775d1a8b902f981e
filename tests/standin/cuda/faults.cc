// Counting, failing and slowing calls.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "capture.h"
#include "context.h"
#include "entry.h"
#include "standin.h"

namespace standin {

thread_local bool null_stream_is_per_thread = false;
thread_local bool in_host_function = false;

namespace {

std::atomic<uint64_t> unsupported_calls{0};
std::atomic<const char*> last_unsupported{nullptr};

// As a driver 580 (CUDA 13.0) behaves, measured call by call.
constexpr const char* kAlwaysNames[] = {"cuDriverGetVersion", "cuGetErrorName",      "cuGetErrorString",
                                        "cuGetProcAddress",   "cuGetProcAddress_v2", "cuGetExportTable"};
constexpr const char* kDespiteLostContextNames[] = {"cuInit",
                                                    "cuDeviceGet",
                                                    "cuDeviceGetCount",
                                                    "cuDeviceGetName",
                                                    "cuDeviceGetUuid",
                                                    "cuDeviceGetUuid_v2",
                                                    "cuDeviceGetAttribute",
                                                    "cuDeviceGetPCIBusId",
                                                    "cuDeviceGetByPCIBusId",
                                                    "cuDeviceTotalMem_v2",
                                                    "cuDevicePrimaryCtxGetState",
                                                    "cuDevicePrimaryCtxRetain",
                                                    "cuDevicePrimaryCtxRelease",
                                                    "cuDevicePrimaryCtxRelease_v2",
                                                    "cuDevicePrimaryCtxReset",
                                                    "cuDevicePrimaryCtxReset_v2",
                                                    "cuCtxGetCurrent",
                                                    "cuCtxSetCurrent",
                                                    "cuCtxPushCurrent_v2",
                                                    "cuCtxPopCurrent_v2",
                                                    "cuCtxDestroy_v2",
                                                    "cuCtxGetDevice",
                                                    "cuCtxCreate_v2",
                                                    "cuCtxCreate_v3",
                                                    "cuCtxCreate_v4",
                                                    "cuThreadExchangeStreamCaptureMode"};
constexpr const char* kUnsafeInCaptureNames[] = {"cuMemAlloc_v2",
                                                 "cuMemAllocPitch_v2",
                                                 "cuMemAllocManaged",
                                                 "cuMemFree_v2",
                                                 "cuMemAllocHost_v2",
                                                 "cuMemHostAlloc",
                                                 "cuMemFreeHost",
                                                 "cuMemHostRegister_v2",
                                                 "cuMemHostUnregister",
                                                 "cuEventQuery",
                                                 "cuEventSynchronize",
                                                 "cuStreamQuery",
                                                 "cuStreamSynchronize",
                                                 "cuModuleUnload",
                                                 "cuLibraryUnload",
                                                 "cuMemPoolTrimTo",
                                                 "cuGraphInstantiate",
                                                 "cuGraphInstantiate_v2",
                                                 "cuGraphInstantiateWithFlags",
                                                 "cuGraphInstantiateWithParams",
                                                 "cuGraphExecDestroy",
                                                 "cuCtxSetLimit",
                                                 "cuArrayCreate_v2",
                                                 "cuArray3DCreate_v2",
                                                 "cuArrayDestroy"};
constexpr const char* kConflictsWithCaptureNames[] = {"cuCtxSynchronize", "cuCtxSynchronize_v2",
                                                      "cuCtxRecordEvent", "cuCtxWaitEvent"};
constexpr const char* kNotInHostFunctionNames[] = {"cuMemAlloc_v2",
                                                   "cuMemFree_v2",
                                                   "cuMemHostAlloc",
                                                   "cuMemFreeHost",
                                                   "cuMemHostRegister_v2",
                                                   "cuMemHostUnregister",
                                                   "cuCtxSynchronize",
                                                   "cuStreamSynchronize",
                                                   "cuEventSynchronize",
                                                   "cuModuleLoadData",
                                                   "cuModuleLoadDataEx",
                                                   "cuModuleUnload",
                                                   "cuLaunchKernel",
                                                   "cuLaunchKernelEx",
                                                   "cuGraphLaunch",
                                                   "cuMemAllocAsync",
                                                   "cuMemFreeAsync",
                                                   "cuStreamCreate",
                                                   "cuStreamCreateWithPriority",
                                                   "cuStreamDestroy_v2",
                                                   "cuLaunchHostFunc"};

std::string WithoutPerThreadSuffix(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - 5);
  }
  return name;
}

template <size_t n>
void AddRule(const char* const (&names)[n], Rule rule) {
  for (size_t i = 0; i < entry_count; ++i) {
    const std::string plain = WithoutPerThreadSuffix(entries[i].name);
    for (const char* name : names) {
      if (plain == name) entries[i].rules |= rule;
    }
  }
}

[[gnu::constructor]] void AddRules() {
  AddRule(kAlwaysNames, kAlways);
  AddRule(kAlwaysNames, kDespiteLostContext);
  AddRule(kDespiteLostContextNames, kDespiteLostContext);
  AddRule(kUnsafeInCaptureNames, kUnsafeInCapture);
  AddRule(kConflictsWithCaptureNames, kConflictsWithCapture);
  AddRule(kNotInHostFunctionNames, kNotInHostFunction);
}

bool TakeFault(EntryState& state) {
  uint64_t left = state.fail_in.load(std::memory_order_relaxed);
  while (left > 0 && !state.fail_in.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left == 1;
}

CUresult Admit(EntryState& state) {
  if (const uint64_t ns = state.slow_ns.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  }
  if (TakeFault(state)) return static_cast<CUresult>(state.fail_with.load(std::memory_order_relaxed));
  const bool is_init = std::strcmp(state.name, "cuInit") == 0;
  if (!(state.rules & kAlways) && (IsForkedChild() || (!is_init && !IsInitialized()))) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (in_host_function && (state.rules & kNotInHostFunction)) return CUDA_ERROR_NOT_PERMITTED;
  if (!(state.rules & kDespiteLostContext)) {
    if (const CUresult lost = LossOfCurrentContext()) return lost;
  }
  if (state.rules & kConflictsWithCapture) return RefuseConflictWithCapture();
  if (state.rules & kUnsafeInCapture) return RefuseUnsafeCall();
  return CUDA_SUCCESS;
}

}  // namespace

Entry::Entry(EntryState& state, bool per_thread) {
  state.calls.fetch_add(1, std::memory_order_relaxed);
  null_stream_is_per_thread = per_thread;
  result_ = Admit(state);
}

EntryState* FindEntry(const char* name) {
  for (size_t i = 0; i < entry_count; ++i) {
    if (std::strcmp(entries[i].name, name) == 0) return &entries[i];
  }
  return nullptr;
}

CUresult Unsupported(const char* name) {
  unsupported_calls.fetch_add(1, std::memory_order_relaxed);
  last_unsupported.store(name, std::memory_order_relaxed);
  return CUDA_ERROR_NOT_SUPPORTED;
}

void ReadFaultsFromEnvironment() {
  if (const char* list = std::getenv("STANDIN_CUDA_FAIL")) {
    std::istringstream in(list);
    for (std::string item; std::getline(in, item, ',');) {
      const size_t a = item.find(':'), b = item.find(':', a + 1);
      if (b == std::string::npos) continue;
      standin_fail(item.substr(0, a).c_str(), std::stoull(item.substr(a + 1)), std::stoi(item.substr(b + 1)));
    }
  }
  if (const char* list = std::getenv("STANDIN_CUDA_SLOW")) {
    std::istringstream in(list);
    for (std::string item; std::getline(in, item, ',');) {
      const size_t a = item.find(':');
      if (a != std::string::npos)
        standin_slow(item.substr(0, a).c_str(), std::stoull(item.substr(a + 1)) * 1000);
    }
  }
}

}  // namespace standin

extern "C" {

uint64_t standin_calls(const char* function) {
  const standin::EntryState* entry = standin::FindEntry(function);
  return entry ? entry->calls.load(std::memory_order_relaxed) : 0;
}

uint64_t standin_unsupported_calls(void) {
  return standin::unsupported_calls.load(std::memory_order_relaxed);
}

const char* standin_last_unsupported(void) {
  return standin::last_unsupported.load(std::memory_order_relaxed);
}

void standin_fail(const char* function, uint64_t nth, int error) {
  if (standin::EntryState* entry = standin::FindEntry(function)) {
    entry->fail_with.store(error, std::memory_order_relaxed);
    entry->fail_in.store(nth, std::memory_order_relaxed);
  }
}

void standin_slow(const char* function, uint64_t extra_ns) {
  if (standin::EntryState* entry = standin::FindEntry(function)) {
    entry->slow_ns.store(extra_ns, std::memory_order_relaxed);
  }
}
}
