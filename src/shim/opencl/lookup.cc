#include "shim/opencl/lookup.h"

#include <dlfcn.h>
#include <string.h>

#include "base/log.h"
#include "opencl/wrappers.h"
#include "shim/common/dl_hooks.h"
#include "shim/common/libraries.h"
#include "shim/common/sorted_names.h"

namespace xsched::opencl {
namespace {

bool IsWrapped(int function) { return function >= 0 && kWrappers[function].via[0] != nullptr; }
bool IsCore(int function) { return kWrappers[function].dispatch_offset != kNotInDispatch; }

// An OpenCL loader asks vendors' libraries for this: that is not the program's doing.
bool IsLoadersLookup(const char* name, const void* caller) {
  if (strcmp(name, "clGetExtensionFunctionAddress") != 0) return false;
  const link_map* library = shim::LibraryAt(caller);
  shim::OpenLibrary open(library);
  void* own = open.handle() == nullptr ? nullptr : shim::RealDlsym(open.handle(), name);
  return own != nullptr && shim::LibraryAt(own) == library;
}

}  // namespace

int FunctionIndex(const char* name) { return shim::IndexOf(name, kFunctionNames, kFunctionCount); }

void* WrapperFor(Route& route, const char* name, void* found) {
  int function = FunctionIndex(name);
  if (!IsWrapped(function)) {
    if (strncmp(name, "clEnqueue", 9) == 0)
      XSCHED_INFO("%s is not known to XSched and runs unscheduled", name);
    return found;
  }
  // Instances give out their own or a vendor's function for a name that they export: the same to the program.
  bool has_own = IsCore(function) && FunctionAt(route.next, function) != nullptr;
  Route* with = has_own ? &route : RouteWith(route, function, found);
  return with == nullptr ? found : kWrappers[function].via[IndexOf(*with)];
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
    // The handle of the program: its scope begins with this library, and goes on behind it.
    if (found != nullptr && found == kWrappers[function].exported) found = RealDlsym(RTLD_NEXT, name);
    if (found == nullptr) return {nullptr, 1};
    route = RouteOfLibrary(found);
  }
  if (route == nullptr || FunctionAt(route->next, function) == nullptr) {
    // Where there is none, dlerror is to say so.
    return {found != nullptr ? found : RealDlsym(RTLD_NEXT, name), 1};
  }
  return {kWrappers[function].via[IndexOf(*route)], 1};
}

void LibraryClosed() { ForgetCallers(); }

}  // namespace xsched::shim
