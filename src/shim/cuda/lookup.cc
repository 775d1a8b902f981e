#include "shim/cuda/lookup.h"

#include <dlfcn.h>
#include <string.h>

#include "base/log.h"
#include "base/sorted_names.h"
#include "cuda/wrappers.h"
#include "preempt/api/launch.h"
#include "shim/common/call_sites.h"
#include "shim/common/captures.h"
#include "shim/common/communicators.h"
#include "shim/common/dl_hooks.h"
#include "shim/common/pass_through.h"
#include "shim/cuda/driver.h"
#include "shim/cuda/nvml.h"

namespace xsched::cuda {

constinit std::atomic<uint64_t> unknown_functions{0};

namespace {

const char* SymbolOf(const Version& version) { return version.symbol; }

bool IsKnownToPass(const char* symbol) { return IndexOf(symbol, kUntouched, kUntouchedCount) >= 0; }

void CountUnknown(const char* symbol, int version) {
  unknown_functions.fetch_add(1, std::memory_order_relaxed);
  XSCHED_INFO("%s of CUDA %d is not known to XSched and passes untouched", symbol, version);
}

// A driver may be newer than the headers that XSched was built with, and have other ways to begin a capture
// (cuStreamBeginRecaptureToGraph of CUDA 13.3).
bool BeginsCaptures(const char* symbol) {
  return strncmp(symbol, "cuStreamBegin", 13) == 0 && strstr(symbol, "apture") != nullptr;
}

// The driver's own answer.
void* AskDriver(const char* symbol, int version, cuuint64_t flags) {
  const Functions& next = Driver();
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (next.cuGetProcAddress_v2 != nullptr) {
    result = next.cuGetProcAddress_v2(symbol, &found, version, flags, &status);
  } else if (next.cuGetProcAddress != nullptr) {
    result = next.cuGetProcAddress(symbol, &found, version, flags);
  }
  return result == CUDA_SUCCESS ? found : nullptr;
}

// True if `found` has the ABI of that version. A driver that is newer than our headers may have a newer ABI,
// and then gives another answer for our version.
bool IsSame(const KnownVersion& known, const char* symbol, cuuint64_t flags, const void* found) {
  if (DriverAddress(known.function) == nullptr) return false;
  return found == DriverAddress(known.function) || found == AskDriver(symbol, known.version, flags);
}

}  // namespace

int WrappedFunction(const char* name) {
  const int i = IndexOf(name, kFunctionNames, kFunctionCount);
  return i >= 0 && kWrappers[i] != nullptr ? i : -1;
}

KnownVersion FindVersion(const char* symbol, int version, bool per_thread) {
  KnownVersion newest;
  for (int i = LowerBound(kVersions, kVersionCount, symbol, SymbolOf); i < kVersionCount; ++i) {
    const Version& known = kVersions[i];
    if (strcmp(known.symbol, symbol) != 0) break;
    // Versions with a per-thread default stream come last. If there are none, one function serves both.
    if ((known.per_thread && !per_thread) || known.version > version) continue;
    newest = {known.function, known.version};
  }
  return newest;
}

void AddressLookup::Finish(CUresult result, const char* symbol, void** address, int version,
                           cuuint64_t flags) {
  if (result != CUDA_SUCCESS || symbol == nullptr || address == nullptr || *address == nullptr) return;
  if (IsKnownToPass(symbol)) return;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const KnownVersion known = FindVersion(symbol, version, per_thread);
  if (known.function >= 0 && IsSame(known, symbol, flags, *address)) {
    *address = kWrappers[known.function];
  } else {
    CountUnknown(symbol, version);
    if (BeginsCaptures(symbol)) shim::CapturesMayBeUnseen();
  }
}

}  // namespace xsched::cuda

namespace xsched::shim {

using namespace xsched::cuda;

static_assert(kFunctionCount <= CallSites::kQuestions, "passing through is remembered per function");

// The name as programs write it: without its version and without its kind of default stream.
const char* FunctionName(int function) {
  for (const Version& version : kVersions) {
    if (version.function == function) return version.symbol;
  }
  return kFunctionNames[function];
}

Lookup LookUp(void* handle, const char* name, void* caller) {
  constexpr Lookup kNotOurs{};
  if (handle == RTLD_NEXT || name == nullptr) return kNotOurs;
  if (strncmp(name, "nccl", 4) == 0) return LookUpCommunicators(handle, name);
  if (name[0] == 'n') return LookUpNvml(handle, name, caller);
  if (name[0] != 'c' || name[1] != 'u') return kNotOurs;
  const int function = WrappedFunction(name);
  if (function < 0) {
    if (BeginsCaptures(name)) CapturesMayBeUnseen();
    return kNotOurs;
  }
  if (preempt::InsideXSched()) return kNotOurs;
  void* found = DlsymBehind(kWrappers[function], handle, name, caller);
  // Do not replace another library's function of that name.
  const bool drivers = found != nullptr && found == DriverAddress(function);
  return {drivers ? kWrappers[function] : found, 1};
}

void LibraryUnloaded() { ForgetPassThrough(); }

}  // namespace xsched::shim
