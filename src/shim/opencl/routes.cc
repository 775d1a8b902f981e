#include "shim/opencl/routes.h"

#include <atomic>

#include "base/fork_handler.h"
#include "base/libraries.h"
#include "base/log.h"
#include "base/mutex.h"
#include "opencl/wrappers.h"
#include "shim/common/call_sites.h"
#include "shim/common/dl_hooks.h"

namespace xsched::opencl {

constinit Route routes[kMaxRoutes] = {};

namespace {

using shim::RealDlsym;

constinit Mutex<LockRank::kOpenClRoutes> mutex;  // serializes adding
constinit std::atomic<int> route_count{0};
constinit Route to_nowhere = {};

// Every implementation of OpenCL has this.
constexpr char kAnyFunction[] = "clGetPlatformIDs";

// ---- which route a caller takes ----

// For each call site, the number of the route that its code is bound to.
constinit shim::CallSites callers;
static_assert(kMaxRoutes <= shim::CallSites::kAnswers);

// Finds the function as ELF's rules do for an undefined symbol of the library that contains `caller`: in the
// global scope (here: behind this shim), then in the libraries that it depends on.
void* FunctionInScopeOf(const void* caller) {
  if (void* function = RealDlsym(RTLD_NEXT, kAnyFunction)) return function;
  OpenLibrary library(LibraryAt(caller));
  return library.handle() == nullptr ? nullptr : RealDlsym(library.handle(), kAnyFunction);
}

// For code that is bound to no instance: it has a pointer to a function, or another library made a tail call.
Route* AnyRoute() {
  if (route_count.load(std::memory_order_acquire) != 0) return &routes[0];
  const OpenLibrary library("libOpenCL.so.1");
  void* function = library.handle() == nullptr ? nullptr : RealDlsym(library.handle(), kAnyFunction);
  return function == nullptr ? nullptr : RouteOfLibrary(function);
}

// ---- adding routes ----

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] { mutex.ResetAfterFork(); }};
  handler.Install();
}

Route* FindRoute(const link_map* library) REQUIRES(mutex) {
  for (int i = 0; i < route_count.load(std::memory_order_relaxed); ++i) {
    if (routes[i].library == library) return &routes[i];
  }
  return nullptr;
}

Route* AddRouteLocked(const Functions& next, const link_map* library) REQUIRES(mutex) {
  int count = route_count.load(std::memory_order_relaxed);
  if (count == kMaxRoutes) {
    static bool warned = false;
    if (!warned)
      XSCHED_WARN("more than %d instances of OpenCL in one process: one runs unscheduled", kMaxRoutes);
    warned = true;
    return nullptr;
  }
  routes[count].next = next;
  routes[count].library = library;
  route_count.store(count + 1, std::memory_order_release);
  return &routes[count];
}

}  // namespace

Route* FindRouteOfCaller(const void* caller) {
  void* function = FunctionInScopeOf(caller);
  return function == nullptr ? AnyRoute() : RouteOfLibrary(function);
}

Route& RouteOfCaller(void* return_address) {
  const int known = callers.Find(return_address);
  if (known != shim::CallSites::kUnknown) [[likely]]
    return routes[known];
  Route* route = FindRouteOfCaller(return_address);
  if (route == nullptr) {
    static std::atomic<bool> warned{false};
    if (!warned.exchange(true)) XSCHED_WARN("OpenCL was called, but no OpenCL library is loaded");
    return to_nowhere;
  }
  callers.Remember(return_address, IndexOf(*route));
  return *route;
}

void ForgetCallers() {
  if (route_count.load(std::memory_order_acquire) == 0) return;
  callers.Forget();
}

Route* RouteOfLibrary(const void* function) {
  const link_map* library = LibraryAt(function);
  if (library == nullptr) return nullptr;
  {
    MutexLock lock(mutex);
    if (Route* route = FindRoute(library)) return route;
  }
  OpenLibrary open(library);
  Functions next{};
  for (int i = 0; i < kFunctionCount; ++i) {
    void* found = open.handle() == nullptr ? nullptr : RealDlsym(open.handle(), kFunctionNames[i]);
    if (found != kWrappers[i].exported) FunctionAt(next, i) = found;
  }
  InstallForkHandler();
  MutexLock lock(mutex);
  Route* route = FindRoute(library);
  if (route == nullptr) route = AddRouteLocked(next, library);
  if (route != nullptr) open.KeepForGood();
  return route;
}

Route* AddRoute(const Functions& next, const link_map* library) {
  InstallForkHandler();
  MutexLock lock(mutex);
  return AddRouteLocked(next, library);
}

Route* RouteWith(Route& first, int function, void* found) {
  MutexLock lock(mutex);
  for (Route* route = &first;; route = route->sibling) {
    void*& known = FunctionAt(route->next, function);
    // release, relaxed: a thread that calls the function got its address from here.
    if (known == nullptr) __atomic_store_n(&known, found, __ATOMIC_RELEASE);
    if (known == found) return route;
    if (route->sibling != nullptr) continue;
    Functions next = first.next;
    for (int i = 0; i < kFunctionCount; ++i) {
      if (kWrappers[i].dispatch_offset == kNotInDispatch) FunctionAt(next, i) = nullptr;
    }
    FunctionAt(next, function) = found;
    return route->sibling = AddRouteLocked(next, nullptr);
  }
}

}  // namespace xsched::opencl
