// The HIP runtime's own interception (ROCm 6.2 and later, where it was built with it): before its first
// function runs, each instance offers its dispatch table to a library that exports these two functions. We
// put our wrappers there; so every call is caught, however its caller is linked.
//
//   program -> the runtime's exported function -> its table: our wrapper -> a profiler's -> the runtime's own
//
// This may run inside the dynamic linker: nothing is done here but exchanging pointers.
#include <dlfcn.h>
#include <string.h>

#include "hip/wrappers.h"
#include "shim/common/dl_hooks.h"
#include "shim/hip/instances.h"

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

// A table as it was when it was offered first: the runtime's own functions.
struct Offered {
  std::atomic<const DispatchTable*> table{nullptr};
  int count = 0;
  void* functions[kTableLength] = {};
};

constinit Offered offered[kMaxRuntimes] = {};

void* FunctionOf(const void* data, const char* name) {
  const auto* own = static_cast<const Offered*>(data);
  for (int i = 0; i < own->count; ++i) {
    if (strcmp(kTable[i].name, name) == 0) return own->functions[i];
  }
  return nullptr;
}

const void* FirstFunction(const Offered& own) {
  for (int i = 0; i < own.count; ++i) {
    if (own.functions[i] != nullptr) return own.functions[i];
  }
  return nullptr;
}

// Null: there are too many, or it was offered before (all are, again, when a profiler is attached later).
Offered* Keep(const DispatchTable& table) {
  for (Offered& place : offered) {
    const DispatchTable* there = nullptr;
    if (place.table.compare_exchange_strong(there, &table, std::memory_order_acq_rel)) {
      place.count = table.count();
      memcpy(place.functions, table.functions, sizeof(void*) * static_cast<size_t>(place.count));
      return &place;
    }
    if (there == &table) return nullptr;
  }
  return nullptr;
}

// The instance that offers the table. Null: it is to stay as it is.
Instance* Register(const DispatchTable& table) {
  const Offered* own = Keep(table);
  const void* any = own == nullptr ? nullptr : FirstFunction(*own);
  Runtime* runtime = any == nullptr ? nullptr : RegisterDispatchTable(any, FunctionOf, own);
  const int index = runtime == nullptr ? kMaxInstances : runtime->index();
  if (index >= kMaxInstances) return nullptr;
  instances[index].Register(*runtime);
  return &instances[index];
}

// Its wrappers go on to what is in the table by now.
void PutWrappers(Instance& instance, DispatchTable& table) {
  for (int i = 0; i < table.count(); ++i) {
    if (kTable[i].function >= 0)
      reinterpret_cast<void**>(&instance.table_functions)[kTable[i].function] = table.functions[i];
  }
  instance.by_pointer.store(&instance.table_functions, std::memory_order_release);
  for (int i = 0; i < table.count(); ++i) {
    if (kTable[i].function >= 0 && table.functions[i] != nullptr)
      table.functions[i] = kWrappers[kTable[i].function].by_pointer[&instance - instances];
  }
}

// ---- a profiler that is loaded as well, behind this library in the global scope ----

using SetTable = int(const char* name, uint64_t version, uint64_t instance, void** tables, uint64_t count);

// Null: there is none.
SetTable* ProfilersSetTable() {
  return reinterpret_cast<SetTable*>(shim::RealDlsym(RTLD_NEXT, "rocprofiler_set_api_table"));
}

}  // namespace
}  // namespace xsched::hip

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {

// That it is there is what the runtime looks for. A profiler calls all that there are: we want nothing of it.
XSCHED_EXPORT void* rocprofiler_configure(uint32_t, const char*, uint32_t, void*) { return nullptr; }

// Called for each table of each library of ROCm's; "hip" is the one with the functions that programs call.
// The profiler gets it before us, and so is called behind us: it sees what is launched, when it is.
XSCHED_EXPORT int rocprofiler_set_api_table(const char* name, uint64_t version, uint64_t instance,
                                            void** api_tables, uint64_t count) {
  using namespace xsched::hip;
  const bool is_hip = name != nullptr && strcmp(name, "hip") == 0 && api_tables != nullptr && count != 0;
  auto* table = is_hip ? static_cast<DispatchTable*>(api_tables[0]) : nullptr;
  Instance* offering = table == nullptr ? nullptr : Register(*table);
  SetTable* next = ProfilersSetTable();
  const int result = next == nullptr ? 0 : next(name, version, instance, api_tables, count);
  if (offering != nullptr) PutWrappers(*offering, *table);
  return result;
}

}  // extern "C"
