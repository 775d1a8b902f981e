#include "shim/hip/copies.h"

#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "hip/wrappers.h"
#include "shim/common/call_sites.h"
#include "shim/common/dl_hooks.h"
#include "shim/common/fork.h"
#include "shim/common/libraries.h"
#include "shim/common/told.h"

namespace xsched::hip {

constinit Copy copies[kMaxRuntimes] = {};
constinit std::atomic<int> copy_count{0};
constinit thread_local int call_depth __attribute__((tls_model("initial-exec"))) = 0;

namespace {

constinit const WrappedFunctions kNoFunctions = {};
constinit Copy nowhere = {};

// The index of the caller's copy.
constinit shim::CallSites callers;

constinit NoDestroy<PointerMap<Copy>> makers;
constinit Mutex mutex;  // serialises the filling of tables

void InstallForkHandler() {
  static constinit shim::ForkHandler handler = {[] {
    mutex.ResetAfterFork();
    makers->ResetAfterFork();
  }};
  handler.Install();
}

// REQUIRES: mutex is free: the dynamic linker has locks of its own, and may call us with them held.
void LookUpExported(const Runtime& runtime, WrappedFunctions* out) {
  shim::OpenLibrary library(shim::LibraryAt(runtime.base()));
  auto* entries = reinterpret_cast<void**>(out);
  for (int i = 0; i < kFunctionCount; ++i) {
    entries[i] = library.handle() == nullptr ? nullptr : shim::RealDlsym(library.handle(), kFunctionNames[i]);
  }
}

void Tell(const void* site, const Runtime& runtime) {
  const link_map* library = shim::LibraryAt(site);
  if (shim::FirstTold(shim::Told::kBinding, library))
    shim::Tell("[XSched] HIP: %s uses %s\n", shim::NameForPeople(library), runtime.path());
}

}  // namespace

Copy* CopyOf(Runtime* runtime) {
  if (runtime == nullptr) return nullptr;
  Copy& copy = copies[runtime->index()];
  if (copy.exported.load(std::memory_order_acquire) != nullptr) return &copy;
  WrappedFunctions functions;
  LookUpExported(*runtime, &functions);
  InstallForkHandler();
  MutexLock lock(mutex);
  if (copy.exported.load(std::memory_order_relaxed) != nullptr) return &copy;
  copy.exported_functions = functions;
  copy.runtime = runtime;
  const WrappedFunctions* none = nullptr;
  // Not where its dispatch table has come first.
  copy.by_pointer.compare_exchange_strong(none, &copy.exported_functions, std::memory_order_release);
  copy.exported.store(&copy.exported_functions, std::memory_order_release);
  copy_count.fetch_add(1, std::memory_order_relaxed);
  return &copy;
}

Target ByLinking(const void* site) {
  const int known = callers.Find(site);
  if (known != shim::CallSites::kUnknown) [[likely]]
    return {&copies[known], &copies[known].exported_functions};
  Copy* copy = CopyOf(RuntimeOfCaller(site));
  if (copy == nullptr) return {&nowhere, &kNoFunctions};
  callers.Remember(site, static_cast<uint16_t>(copy - copies));
  Tell(site, *copy->runtime);
  return {copy, &copy->exported_functions};
}

void Made(Copy& copy, const void* handle) {
  if (handle == nullptr) return;
  InstallForkHandler();
  makers->Insert(reinterpret_cast<uint64_t>(handle), &copy);
}

void Gone(const void* handle) {
  if (handle != nullptr) makers->Remove(reinterpret_cast<uint64_t>(handle));
}

Target TargetOfHandle(const Target& target, const void* handle) {
  Copy* maker = handle == nullptr ? nullptr : makers->Find(reinterpret_cast<uint64_t>(handle));
  if (maker == nullptr || maker == target.copy) return target;
  return ByPointer(*maker);
}

void ForgetCallers() { callers.Forget(); }

}  // namespace xsched::hip
