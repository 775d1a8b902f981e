// The HIP runtime's own interception (ROCm 6.2 and later, where it was built with it): before its first
// function runs, each copy offers its dispatch table to a library that exports these two functions. We put
// our wrappers there; so every call is caught, however its caller is linked.
//
//   program -> the runtime's exported function -> its table: our wrapper -> the runtime's function
//
// This may run inside the dynamic linker: nothing is done here but exchanging pointers.
#include <dlfcn.h>
#include <string.h>

#include "hip/wrappers.h"
#include "shim/common/dl_hooks.h"
#include "shim/hip/copies.h"

namespace xsched::hip {
namespace {

// As the runtime lays it out: its own size in bytes, then pointers to functions (kTable names them). One that
// is shorter than ours is older, and has its first functions; a longer one is newer: the rest of it stays.
struct DispatchTable {
  size_t size;
  void* functions[];

  int count() const {
    const size_t count = size < sizeof size ? 0 : (size - sizeof size) / sizeof(void*);
    return static_cast<int>(count < kTableLength ? count : kTableLength);
  }
};

// The functions of a table before ours, for the copy that they are of.
struct Originals {
  int count = 0;
  void* functions[kTableLength] = {};
};

constinit Originals originals[kMaxRuntimes] = {};
constinit std::atomic<int> tables{0};

void* OriginalOf(const void* data, const char* name) {
  const auto* original = static_cast<const Originals*>(data);
  for (int i = 0; i < original->count; ++i) {
    if (strcmp(kTable[i].name, name) == 0) return original->functions[i];
  }
  return nullptr;
}

const void* FirstFunction(const Originals& original) {
  for (int i = 0; i < original.count; ++i) {
    if (original.functions[i] != nullptr) return original.functions[i];
  }
  return nullptr;
}

void Patch(DispatchTable* table) {
  const int number = tables.fetch_add(1, std::memory_order_relaxed);
  if (number >= kMaxRuntimes) return;
  Originals& original = originals[number];
  original.count = table->count();
  memcpy(original.functions, table->functions, sizeof(void*) * static_cast<size_t>(original.count));
  const void* any = FirstFunction(original);
  Runtime* runtime = any == nullptr ? nullptr : RegisterDispatchTable(any, OriginalOf, &original);
  const int index = runtime == nullptr ? kMaxCopies : runtime->index();
  if (index >= kMaxCopies) return;
  Copy& copy = copies[index];
  for (int i = 0; i < original.count; ++i) {
    if (kTable[i].function >= 0)
      reinterpret_cast<void**>(&copy.table_functions)[kTable[i].function] = original.functions[i];
  }
  if (copy.exported.load(std::memory_order_acquire) == nullptr) copy.runtime = runtime;
  copy.by_pointer.store(&copy.table_functions, std::memory_order_release);
  for (int i = 0; i < original.count; ++i) {
    if (kTable[i].function >= 0 && original.functions[i] != nullptr)
      table->functions[i] = kWrappers[kTable[i].function].by_pointer[index];
  }
}

// ---- a profiler that is loaded as well ----

using SetTable = int(const char* name, uint64_t version, uint64_t instance, void** tables, uint64_t count);

// Null: there is none.
SetTable* ProfilersSetTable(const SetTable* ours) {
  constexpr char kName[] = "rocprofiler_set_api_table";
  auto* next = reinterpret_cast<SetTable*>(shim::RealDlsym(RTLD_NEXT, kName));
  // A shim that was not preloaded comes last in the global scope: the profiler's is the first one there.
  if (next == nullptr) next = reinterpret_cast<SetTable*>(shim::RealDlsym(RTLD_DEFAULT, kName));
  return next == ours ? nullptr : next;
}

}  // namespace
}  // namespace xsched::hip

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {

// That it is there is what the runtime looks for. A profiler calls all that there are: we want nothing of it.
XSCHED_EXPORT void* rocprofiler_configure(uint32_t, const char*, uint32_t, void*) { return nullptr; }

// The profiler comes first, and so is called behind us: it sees what is launched, when it is.
XSCHED_EXPORT int rocprofiler_set_api_table(const char* name, uint64_t version, uint64_t instance,
                                            void** api_tables, uint64_t count) {
  using namespace xsched::hip;
  SetTable* next = ProfilersSetTable(rocprofiler_set_api_table);
  const int result = next == nullptr ? 0 : next(name, version, instance, api_tables, count);
  if (name != nullptr && strcmp(name, "hip") == 0 && api_tables != nullptr && count != 0 &&
      api_tables[0] != nullptr) {
    Patch(static_cast<DispatchTable*>(api_tables[0]));
  }
  return result;
}

}  // extern "C"
