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
constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constinit const WrappedFunctions kNoFunctions = {};
constinit Copy nowhere = {};

// The index of the copy that the code at an address is bound to.
constinit shim::CallSites bindings;
static_assert(kMaxRuntimes <= shim::CallSites::kAnswers);

// The copy that made a handle.
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

}  // namespace

void Copy::Meet(Runtime& runtime) {
  if (runtime_.exchange(&runtime, std::memory_order_acq_rel) == nullptr)
    copy_count.fetch_add(1, std::memory_order_relaxed);
}

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
  copy.Meet(*runtime);
  const WrappedFunctions* none = nullptr;
  // Not where its dispatch table has come first.
  copy.by_pointer.compare_exchange_strong(none, &copy.exported_functions, std::memory_order_release);
  copy.exported.store(&copy.exported_functions, std::memory_order_release);
  return &copy;
}

Target ByLinking(const void* site) {
  const int known = bindings.Find(site);
  if (known != shim::CallSites::kUnknown) [[likely]]
    return {&copies[known], &copies[known].exported_functions};
  Copy* copy = CopyOf(RuntimeOfCaller(site));
  if (copy == nullptr) return {&nowhere, &kNoFunctions};
  bindings.Remember(site, static_cast<int>(copy - copies));
  TellBinding(site, *copy);
  return {copy, &copy->exported_functions};
}

void TellBinding(const void* site, const Copy& copy) {
  const link_map* library = shim::LibraryAt(site);
  if (shim::FirstTold(shim::Told::kBinding, library))
    shim::Tell("[XSched] HIP: %s uses %s\n", shim::NameForPeople(library), copy.runtime().path());
}

void ForgetCallers() { bindings.Forget(); }

bool Call::GoesBy(Handle handle) {
  Copy* maker = handle.value == nullptr ? nullptr : makers->Find(reinterpret_cast<uint64_t>(handle.value));
  if (maker == nullptr) return false;
  if (maker != target_.copy) target_ = ByPointer(*maker);
  return true;
}

bool Call::GoesBy(Code code) {
  if (code.address == nullptr) return false;
  const Target target = ByLinking(code.address);
  if (target.copy == &nowhere) return false;
  if (target.copy != target_.copy) target_ = ByPointer(*target.copy);
  return true;
}

void Call::Remember(const void* handle) const {
  if (handle == nullptr) return;
  InstallForkHandler();
  makers->Insert(reinterpret_cast<uint64_t>(handle), &copy());
}

void Call::Ends(const void* handle) const {
  if (handle != nullptr) makers->Remove(reinterpret_cast<uint64_t>(handle));
}

}  // namespace xsched::hip
