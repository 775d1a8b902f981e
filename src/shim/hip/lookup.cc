#include "shim/hip/lookup.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cstddef>

#include "base/sorted_names.h"
#include "hip/wrappers.h"
#include "shim/common/call_sites.h"
#include "shim/common/communicators.h"
#include "shim/common/dl_hooks.h"
#include "shim/common/pass_through.h"

namespace xsched::hip {
namespace {

void* AddressOf(const WrappedFunctions& functions, int function) {
  return reinterpret_cast<void* const*>(&functions)[function];
}

// An older instance has a shorter table.
bool IsInTable(const Instance& instance, int function) {
  return instance.by_pointer.load(std::memory_order_acquire) == &instance.table_functions &&
         AddressOf(instance.table_functions, function) != nullptr;
}

// The wrapper for `found`, a function that the instance exports.
void* WrapperFor(const Instance& instance, int function, void* found) {
  const ptrdiff_t index = &instance - instances;
  // If the function is in its dispatch table, the call is intercepted there. Further instances have no
  // wrappers by pointer.
  if (index >= kMaxInstances || IsInTable(instance, function)) return found;
  return kWrappers[function].by_pointer[index];
}

bool IsThe(const Instance& instance, int function, const void* found) {
  const WrappedFunctions* exported = instance.exported.load(std::memory_order_acquire);
  return function >= 0 && exported != nullptr && AddressOf(*exported, function) == found;
}

// The index of the function with that name. If the program asked for the per-thread default stream, of that
// variant.
int FunctionOf(const Instance& instance, const char* symbol, const void* found) {
  int function = WrappedFunction(symbol);
  if (IsThe(instance, function, found)) return function;
  char variant[128];
  if (snprintf(variant, sizeof variant, "%s_spt", symbol) >= static_cast<int>(sizeof variant)) return -1;
  function = WrappedFunction(variant);
  return IsThe(instance, function, found) ? function : -1;
}

}  // namespace

int WrappedFunction(const char* symbol) { return IndexOf(symbol, kFunctionNames, kFunctionCount); }

void AddressLookup::Finish(hipError_t result, const char* symbol, void** address) const {
  if (result != hipSuccess || symbol == nullptr || address == nullptr || *address == nullptr) return;
  const Instance* instance = InstanceOf(&call_.instance().runtime());
  if (instance == nullptr) return;
  const int function = FunctionOf(*instance, symbol, *address);
  if (function < 0) return;
  *address = WrapperFor(*instance, function, *address);
  LogBinding(call_.site(), *instance);
}

}  // namespace xsched::hip

namespace xsched::shim {

using namespace xsched::hip;

static_assert(kFunctionCount <= CallSites::kQuestions, "passing through is remembered per function");

const char* FunctionName(int function) { return kFunctionNames[function]; }

Lookup LookUp(void* handle, const char* name, void* caller) {
  constexpr Lookup kNotOurs{};
  if (handle != RTLD_NEXT && name != nullptr && strncmp(name, "nccl", 4) == 0)
    return LookUpCommunicators(handle, name);
  if (handle == RTLD_NEXT || name == nullptr ||
      (strncmp(name, "hip", 3) != 0 && strncmp(name, "_Z2", 3) != 0))
    return kNotOurs;
  const int function = WrappedFunction(name);
  // A nested lookup by the runtime: it must find its own function.
  if (function < 0 || IsInsideCall(__builtin_frame_address(0)) || preempt::InsideXSched()) return kNotOurs;
  if (handle == RTLD_DEFAULT) {
    // If this library comes first, the function behind it. Otherwise the one that the caller is bound to.
    void* next = RealDlsym(RTLD_NEXT, name);
    Instance* instance = InstanceOf(next != nullptr ? RuntimeAt(next) : RuntimeOfCaller(caller));
    if (instance == nullptr) return {next, 1};
    LogBinding(caller, *instance);
    void* found = AddressOf(instance->exported_functions, function);
    return {found == nullptr ? next : WrapperFor(*instance, function, found), 1};
  }
  void* found = RealDlsym(handle, name);
  // For the handle of the program, the scope begins with this library. Find the function behind it.
  if (found != nullptr && found == kWrappers[function].exported) found = RealDlsym(RTLD_NEXT, name);
  if (found == nullptr) return {nullptr, 1};
  // Do not replace another library's function of that name.
  Instance* instance = InstanceOf(RuntimeAt(found));
  if (instance == nullptr || !IsThe(*instance, function, found)) return {found, 1};
  LogBinding(caller, *instance);
  return {WrapperFor(*instance, function, found), 1};
}

void LibraryUnloaded() {
  ForgetPassThrough();
  ForgetCallers();
}

}  // namespace xsched::shim
