#include "hal/hip/runtime.h"

#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/driver_library.h"
#include "base/env.h"
#include "base/libraries.h"
#include "base/loaded_libraries.h"
#include "base/log.h"
#include "base/no_destroy.h"
#include "hal/hip/last_error.h"
#include "preempt/api/launch.h"

namespace xsched::hip {
namespace {

using preempt::ReentrancyGuard;

constexpr const char* kFunctionNames[] = {
    "hipGetDevice",
    "hipSetDevice",
    "hipGetDeviceCount",
    "hipRuntimeGetVersion",
    "hipDeviceGetPCIBusId",
    "hipDeviceGetName",
    "hipGetLastError",
    "hipPeekAtLastError",
    "hipGetStreamDeviceId",
    "hipStreamGetFlags",
    "hipStreamQuery",
    "hipStreamSynchronize",
    "hipStreamIsCapturing",
    "hipThreadExchangeStreamCaptureMode",
    "hipEventCreateWithFlags",
    "hipEventDestroy",
    "hipEventRecord",
    "hipEventQuery",
    "hipDeviceGetMemPool",
    "hipMemPoolGetAttribute",
    "hipMemPoolTrimTo",
    "hipDeviceGetGraphMemAttribute",
    "hipDeviceGraphMemTrim",
    "hipMalloc",
    "hipMemGetAddressRange",
};
static_assert(sizeof(Functions) == sizeof kFunctionNames, "each function has its name, in order");

// What every runtime has, and programs link to.
constexpr char kProbe[] = "hipGetDeviceCount";
// By file name or SONAME.
constexpr char kLibrary[] = "libamdhip64";
// By which the user names one.
constexpr char kVariable[] = "XSCHED_HIP_LIB";
// Wrappers have the names of what they wrap.
constexpr char kShim[] = "libshimhip.";

// Far more than it takes.
constexpr Duration kAddingTakes = std::chrono::seconds(1);

// What is loaded at `address`, and is no shim. False: nothing.
bool FindRuntimeAt(const void* address, LoadedLibrary* out) {
  return FindLibraryAt(address, out) && strncmp(FileName(out->path), kShim, sizeof kShim - 1) != 0;
}

// Calls find(name) for each function; false: one that nothing works without is missing.
template <typename Find>
bool FillFunctions(Functions* out, Find&& find) {
  size_t i = 0;
  for (const char* name : kFunctionNames) {
    void* function = find(name);
    memcpy(reinterpret_cast<char*>(out) + i++ * sizeof function, &function, sizeof function);
  }
  return out->hipGetDevice != nullptr && out->hipStreamSynchronize != nullptr &&
         out->hipEventCreateWithFlags != nullptr && out->hipEventRecord != nullptr &&
         out->hipEventQuery != nullptr;
}

}  // namespace

void (*while_an_instance_is_added)() = nullptr;

// Without locks: it is used inside the dynamic linker (constructors call the runtime), whose lock another
// thread would wait for with ours held. Entries are only ever added.
class RuntimeTable {
 public:
  constexpr RuntimeTable() = default;

  // Null: none.
  Runtime* Find(const void* base) {
    for (Runtime& runtime : runtimes_) {
      if (runtime.base() == base) return Ready(runtime);
    }
    return nullptr;
  }

  Runtime* Add(const LoadedLibrary& library, const Functions& functions, void* handle) {
    for (Runtime& runtime : runtimes_) {
      const void* base = nullptr;
      // Release: a thread that reads the count sees the entries.
      if (!runtime.base_.compare_exchange_strong(base, library.base, std::memory_order_acq_rel)) {
        if (base == library.base) return Ready(runtime);
        continue;
      }
      if (while_an_instance_is_added != nullptr) [[unlikely]]
        while_an_instance_is_added();
      runtime.functions_ = functions;
      memcpy(runtime.path_, library.path, sizeof runtime.path_);
      runtime.library_.store(handle, std::memory_order_relaxed);
      runtime.ready_.store(true, std::memory_order_release);
      return &runtime;
    }
    static std::atomic<bool> warned{false};
    if (!warned.exchange(true)) {
      XSCHED_WARN("more than %d instances of the HIP runtime: %s runs unscheduled", kMaxRuntimes,
                  library.path);
    }
    return nullptr;
  }

  int Count() const {
    int count = 0;
    while (count < kMaxRuntimes && runtimes_[count].ready_.load(std::memory_order_acquire)) ++count;
    return count;
  }

  Runtime& operator[](int index) { return runtimes_[index]; }
  int IndexOf(const Runtime& runtime) const { return static_cast<int>(&runtime - runtimes_); }

  static void SetOriginal(Runtime& runtime, OriginalFunction original, const void* data) {
    runtime.original_data_.store(data, std::memory_order_relaxed);
    runtime.original_.store(original, std::memory_order_release);
  }

 private:
  // Waits for a thread that is adding it just now: that one only copies meanwhile. Null: it is gone, because
  // another thread has forked in that moment.
  static Runtime* Ready(Runtime& runtime) {
    if (runtime.ready_.load(std::memory_order_acquire)) [[likely]]
      return &runtime;
    const TimePoint until = MonotonicClock::now() + kAddingTakes;
    while (!runtime.ready_.load(std::memory_order_acquire)) {
      if (MonotonicClock::now() > until) return nullptr;
      sched_yield();
    }
    return &runtime;
  }

  Runtime runtimes_[kMaxRuntimes];
};

namespace {

constinit NoDestroy<RuntimeTable> table;

// REQUIRES: guard. Null: it is no HIP runtime.
Runtime* Register(const LoadedLibrary& library) {
  if (Runtime* known = table->Find(library.base)) return known;
  OpenLibrary open(library.path);
  void* handle = open.handle();
  if (handle == nullptr) return nullptr;
  Functions functions;
  const bool complete = FillFunctions(&functions, [handle](const char* name) { return dlsym(handle, name); });
  // Of something that only depends on a runtime, dlsym finds that runtime's.
  LoadedLibrary found{};
  const bool has_them =
      complete && FindRuntimeAt(dlsym(handle, "hipStreamSynchronize"), &found) && found.base == library.base;
  return has_them ? table->Add(library, functions, open.KeepForGood()) : nullptr;
}

// REQUIRES: guard.
void RegisterLoaded() {
  static std::atomic<uint64_t> seen_loads{0};
  const uint64_t loads = LoadCount();
  if (seen_loads.load(std::memory_order_acquire) == loads) return;
  Array<LoadedLibrary> libraries;
  if (!FindLoadedLibraries(kLibrary, &libraries)) return;
  for (const LoadedLibrary& library : libraries) Register(library);
  seen_loads.store(loads, std::memory_order_release);
}

bool SameFile(const char* a, const char* b) {
  struct stat of_a, of_b;
  return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// Of XSCHED_HIP_LIB; null: it is not set, or does not say.
Runtime* NamedRuntime() {
  const char* named = EnvText(kVariable);
  if (named == nullptr) return nullptr;
  const int count = table->Count();
  for (int i = 0; i < count; ++i) {
    if (SameFile((*table)[i].path(), named)) return &(*table)[i];
  }
  if (count != 0) {
    static std::atomic<bool> logged{false};
    if (!logged.exchange(true)) {
      XSCHED_INFO("%s=%s is not loaded, but %s is: using that", kVariable, named, (*table)[0].path());
    }
    return nullptr;
  }
  void* library = OpenNamedLibrary(kVariable);
  if (library == nullptr) return nullptr;
  void* probe = dlsym(library, kProbe);
  LoadedLibrary found{};
  return probe != nullptr && FindRuntimeAt(probe, &found) ? Register(found) : nullptr;
}

// What is loaded first comes first in the list; the program, before all.
bool IsLoadedBefore(const Runtime& runtime, const link_map& library) {
  for (const link_map* earlier = library.l_prev; earlier != nullptr; earlier = earlier->l_prev) {
    if (reinterpret_cast<const void*>(earlier->l_addr) == runtime.base()) return true;
  }
  return false;
}

// The instance that the library was linked to, itself or by what it depends on. Null: it was to none.
Runtime* DependenceOf(const link_map& library) {
  const OpenLibrary open(&library);
  if (open.handle() == nullptr) return nullptr;
  void* probe = dlsym(open.handle(), kProbe);
  return probe == nullptr ? nullptr : RuntimeAt(probe);
}

// Most of ROCm 7's functions take another instance's stream for one of their own. This one looks it up, in
// every version.
bool Knows(const Runtime& runtime, hipStream_t stream) {
  const Functions& next = runtime.next();
  if (next.hipGetStreamDeviceId == nullptr) return false;
  KeepLastError keep(next);
  return next.hipGetStreamDeviceId(stream) >= 0;
}

}  // namespace

int Runtime::index() const { return table->IndexOf(*this); }

void* Runtime::Find(const char* name) const {
  if (OriginalFunction original = original_.load(std::memory_order_acquire)) {
    if (void* function = original(original_data_.load(std::memory_order_relaxed), name)) return function;
  }
  ReentrancyGuard guard;
  void* library = library_.load(std::memory_order_acquire);
  if (library == nullptr) {
    // It could not be opened when it was registered. Two threads may open it: it stays loaded anyway.
    library = OpenLibrary(path_).KeepForGood();
    if (library == nullptr) return nullptr;
    library_.store(library, std::memory_order_release);
  }
  return dlsym(library, name);
}

Runtime* RuntimeAt(const void* address) {
  ReentrancyGuard guard;
  LoadedLibrary library{};
  return FindRuntimeAt(address, &library) ? Register(library) : nullptr;
}

Runtime* RuntimeOfCaller(const void* address) {
  ReentrancyGuard guard;
  RegisterLoaded();
  if (table->Count() == 1) return &(*table)[0];
  void* probe = dlsym(RTLD_DEFAULT, kProbe);
  Runtime* global = probe == nullptr ? nullptr : RuntimeAt(probe);
  const link_map* caller = LibraryAt(address);
  const bool found = caller != nullptr && caller->l_name != nullptr;
  if (found && caller->l_name[0] != '\0' && (global == nullptr || !IsLoadedBefore(*global, *caller))) {
    if (Runtime* runtime = DependenceOf(*caller)) return runtime;
  }
  return global != nullptr ? global : DefaultRuntime();
}

Runtime* DefaultRuntime() {
  ReentrancyGuard guard;
  RegisterLoaded();
  if (Runtime* named = NamedRuntime()) return named;
  return table->Count() == 0 ? nullptr : &(*table)[0];
}

Runtime* RuntimeOfStream(hipStream_t stream, Runtime* guess) {
  ReentrancyGuard guard;
  RegisterLoaded();
  if (guess != nullptr && Knows(*guess, stream)) return guess;
  const int count = table->Count();
  for (int i = 0; i < count; ++i) {
    Runtime& runtime = (*table)[i];
    if (&runtime != guess && Knows(runtime, stream)) return &runtime;
  }
  return nullptr;
}

Runtime* RegisterDispatchTable(const void* function, OriginalFunction original, const void* data) {
  LoadedLibrary library{};
  if (!FindRuntimeAt(function, &library)) return nullptr;
  Runtime* runtime = table->Find(library.base);
  if (runtime == nullptr) {
    Functions functions;
    if (!FillFunctions(&functions, [&](const char* name) { return original(data, name); })) return nullptr;
    runtime = table->Add(library, functions, OpenLibrary(library.path).KeepForGood());
  }
  if (runtime != nullptr) RuntimeTable::SetOriginal(*runtime, original, data);
  return runtime;
}

int RuntimeCount() {
  ReentrancyGuard guard;
  RegisterLoaded();
  return table->Count();
}

Runtime* RuntimeByIndex(int index) {
  return index >= 0 && index < table->Count() ? &(*table)[index] : nullptr;
}

}  // namespace xsched::hip
