#include "shim/hip/instances.h"

#include "base/fork_handler.h"
#include "base/libraries.h"
#include "base/mutex.h"
#include "hip/wrappers.h"
#include "shim/common/call_sites.h"
#include "shim/common/dl_hooks.h"
#include "shim/common/verbose_log.h"

namespace xsched::hip {

constinit Instance instances[kMaxRuntimes] = {};
constinit std::atomic<int> instance_count{0};
constinit Instance nowhere = {};

namespace {

constinit const WrappedFunctions kNoFunctions = {};

// For each call site, the index of the instance that its code is bound to.
constinit shim::CallSites bindings;
static_assert(kMaxRuntimes <= shim::CallSites::kAnswers);

constinit Mutex<LockRank::kHipInstances> mutex;  // serializes filling the tables

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] { mutex.ResetAfterFork(); }};
  handler.Install();
}

// The dynamic linker has locks of its own, and may call us with them held. False: the library could not be
// opened, for example because there was no memory.
bool LookUpExported(const Runtime& runtime, WrappedFunctions* out) EXCLUDES(mutex) {
  OpenLibrary library(LibraryAt(runtime.base()));
  if (library.handle() == nullptr) return false;
  auto* entries = reinterpret_cast<void**>(out);
  for (int i = 0; i < kFunctionCount; ++i) entries[i] = shim::RealDlsym(library.handle(), kFunctionNames[i]);
  return true;
}

}  // namespace

void Instance::Register(Runtime& runtime) {
  if (runtime_.exchange(&runtime, std::memory_order_acq_rel) == nullptr)
    instance_count.fetch_add(1, std::memory_order_relaxed);
}

Instance* InstanceOf(Runtime* runtime) {
  if (runtime == nullptr) return nullptr;
  Instance& instance = instances[runtime->index()];
  if (instance.exported.load(std::memory_order_acquire) != nullptr) return &instance;
  WrappedFunctions functions;
  if (!LookUpExported(*runtime, &functions)) return nullptr;
  InstallForkHandler();
  MutexLock lock(mutex);
  if (instance.exported.load(std::memory_order_relaxed) != nullptr) return &instance;
  instance.exported_functions = functions;
  instance.Register(*runtime);
  const WrappedFunctions* none = nullptr;
  // Unless its dispatch table was registered before.
  instance.by_pointer.compare_exchange_strong(none, &instance.exported_functions, std::memory_order_release);
  instance.exported.store(&instance.exported_functions, std::memory_order_release);
  return &instance;
}

Target ByLinking(const void* site) {
  const int known = bindings.Find(site);
  if (known != shim::CallSites::kUnknown) [[likely]]
    return {&instances[known], &instances[known].exported_functions};
  Instance* instance = InstanceOf(RuntimeOfCaller(site));
  if (instance == nullptr) return {&nowhere, &kNoFunctions};
  bindings.Remember(site, static_cast<int>(instance - instances));
  LogBinding(site, *instance);
  return {instance, &instance->exported_functions};
}

Target ByCode(const void* address) {
  if (bindings.Find(address) == shim::CallSites::kUnknown && LibraryAt(address) == nullptr)
    return {&nowhere, &kNoFunctions};
  return ByLinking(address);
}

void LogBinding(const void* site, const Instance& instance) {
  const link_map* library = LibraryAt(site);
  if (shim::IsFirst(shim::Logged::kBinding, library))
    shim::Log("[XSched] HIP: %s uses %s\n", shim::NameForPeople(library), instance.runtime().path());
}

void ForgetCallers() { bindings.Forget(); }

}  // namespace xsched::hip
