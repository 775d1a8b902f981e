#include "shim/opencl/lookup.h"

#include <dlfcn.h>
#include <string.h>

#include "base/libraries.h"
#include "base/log.h"
#include "base/sorted_names.h"
#include "opencl/wrappers.h"
#include "shim/common/dl_hooks.h"

namespace xsched::opencl {
namespace {

bool IsWrapped(int function) { return function >= 0 && kWrappers[function].via[0] != nullptr; }
bool IsCore(int function) { return kWrappers[function].dispatch_offset != kNotInDispatch; }

// An OpenCL loader looks this up in vendors' libraries. Such a lookup is not the program's.
bool IsLoadersLookup(const char* name, const void* caller) {
  if (strcmp(name, "clGetExtensionFunctionAddress") != 0) return false;
  const link_map* library = LibraryAt(caller);
  OpenLibrary open(library);
  void* own = open.handle() == nullptr ? nullptr : shim::RealDlsym(open.handle(), name);
  return own != nullptr && LibraryAt(own) == library;
}

}  // namespace

int FunctionIndex(const char* name) { return xsched::IndexOf(name, kFunctionNames, kFunctionCount); }

void* WrapperFor(Route& route, const char* name, void* found, Route** with) {
  int function = FunctionIndex(name);
  if (!IsWrapped(function)) {
    if (strncmp(name, "clEnqueue", 9) == 0)
      XSCHED_INFO("%s is not known to XSched and runs unscheduled", name);
    return found;
  }
  // For a name that it exports, an instance may return its own or a vendor's function. To the program they
  // are equal.
  bool has_own = IsCore(function) && FunctionAt(route.next, function) != nullptr;
  *with = has_own ? &route : RouteWith(route, function, found);
  return *with == nullptr ? found : kWrappers[function].via[IndexOf(**with)];
}

}  // namespace xsched::opencl

namespace xsched::shim {

using namespace xsched::opencl;

Lookup LookUp(void* handle, const char* name, void* caller) {
  constexpr Lookup kNotOurs{};
  if (handle == RTLD_NEXT || name == nullptr || name[0] != 'c' || name[1] != 'l') return kNotOurs;
  int function = FunctionIndex(name);
  if (!IsWrapped(function) || preempt::InsideXSched()) return kNotOurs;
  if (IsLoadersLookup(name, caller)) return kNotOurs;

  Route* route;
  void* found = nullptr;
  if (handle == RTLD_DEFAULT) {
    route = FindRouteOfCaller(caller);
  } else {
    found = RealDlsym(handle, name);
    // For the handle of the program, the scope begins with this library. Find the function behind it.
    if (found != nullptr && found == kWrappers[function].exported) found = RealDlsym(RTLD_NEXT, name);
    if (found == nullptr) return {nullptr, 1};
    route = RouteOfLibrary(found);
  }
  if (route == nullptr || FunctionAt(route->next, function) == nullptr) {
    // If there is none, call dlsym again, so that dlerror reports it.
    return {found != nullptr ? found : RealDlsym(RTLD_NEXT, name), 1};
  }
  return {kWrappers[function].via[IndexOf(*route)], 1};
}

void LibraryUnloaded() { ForgetCallers(); }

}  // namespace xsched::shim
