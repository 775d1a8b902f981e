#include "shim/hip/lookup.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cstddef>

#include "hip/wrappers.h"
#include "shim/common/call_sites.h"
#include "shim/common/dl_hooks.h"
#include "shim/common/pass_through.h"
#include "shim/common/sorted_names.h"

namespace xsched::hip {
namespace {

void* AddressOf(const WrappedFunctions& functions, int function) {
  return reinterpret_cast<void* const*>(&functions)[function];
}

// A table is as long as its instance is new.
bool IsInTable(const Instance& instance, int function) {
  return instance.by_pointer.load(std::memory_order_acquire) == &instance.table_functions &&
         AddressOf(instance.table_functions, function) != nullptr;
}

// The wrapper for `found`, the function as the instance exports it.
void* WrapperFor(const Instance& instance, int function, void* found) {
  const ptrdiff_t index = &instance - instances;
  // Its dispatch table catches the call; and more instances have no ways in by pointer.
  if (index >= kMaxInstances || IsInTable(instance, function)) return found;
  return kWrappers[function].by_pointer[index];
}

bool IsThe(const Instance& instance, int function, const void* found) {
  const WrappedFunctions* exported = instance.exported.load(std::memory_order_acquire);
  return function >= 0 && exported != nullptr && AddressOf(*exported, function) == found;
}

// Of its function with that name or, where the program asked for the calling thread's own default stream, of
// that one's variant.
int FunctionOf(const Instance& instance, const char* symbol, const void* found) {
  int function = WrappedFunction(symbol);
  if (IsThe(instance, function, found)) return function;
  char variant[128];
  if (snprintf(variant, sizeof variant, "%s_spt", symbol) >= static_cast<int>(sizeof variant)) return -1;
  function = WrappedFunction(variant);
  return IsThe(instance, function, found) ? function : -1;
}

}  // namespace

int WrappedFunction(const char* symbol) { return shim::IndexOf(symbol, kFunctionNames, kFunctionCount); }

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
  if (handle == RTLD_NEXT || name == nullptr ||
      (strncmp(name, "hip", 3) != 0 && strncmp(name, "_Z2", 3) != 0))
    return kNotOurs;
  const int function = WrappedFunction(name);
  // The runtime's own, in passing: it is to find its own.
  if (function < 0 || IsInsideCall(__builtin_frame_address(0)) || preempt::InsideXSched()) return kNotOurs;
  if (handle == RTLD_DEFAULT) {
    // Behind this library, where it comes first; else what the caller is bound to.
    void* next = RealDlsym(RTLD_NEXT, name);
    Instance* instance = InstanceOf(next != nullptr ? RuntimeAt(next) : RuntimeOfCaller(caller));
    if (instance == nullptr) return {next, 1};
    LogBinding(caller, *instance);
    void* found = AddressOf(instance->exported_functions, function);
    return {found == nullptr ? next : WrapperFor(*instance, function, found), 1};
  }
  void* found = RealDlsym(handle, name);
  // The handle of the program: its scope begins with this library, and goes on behind it.
  if (found != nullptr && found == kWrappers[function].exported) found = RealDlsym(RTLD_NEXT, name);
  if (found == nullptr) return {nullptr, 1};
  // Another library's function of that name is not ours to replace.
  Instance* instance = InstanceOf(RuntimeAt(found));
  if (instance == nullptr || !IsThe(*instance, function, found)) return {found, 1};
  LogBinding(caller, *instance);
  return {WrapperFor(*instance, function, found), 1};
}

void LibraryClosed() {
  ForgetPassThrough();
  ForgetCallers();
}

}  // namespace xsched::shim
