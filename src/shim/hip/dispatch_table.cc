// The HIP runtime's own interception (ROCm 6.2 and later, if built with it). Before its first function runs,
// each instance offers its dispatch table to a library that exports these two functions. We put our wrappers
// there. So every call is intercepted, however its caller is linked.
//
//   program -> the runtime's exported function -> its table: our wrapper -> a profiler's -> the runtime's own
//
// This may run inside the dynamic linker, so it only exchanges pointers.
#include <string.h>

#include "hip/wrappers.h"
#include "shim/hip/instances.h"
#include "shim/hip/profiler.h"

namespace xsched::hip {
namespace {

// The runtime's layout: its size in bytes, then pointers to functions (kTable names them). A shorter table
// than ours is older, and has the first functions. A longer one is newer, and its remaining entries stay
// unchanged. So do entries that may be other functions in the table's version.
struct DispatchTable {
  size_t size;
  void* functions[];

  // How many of its functions are known, from the first one on.
  int count(uint64_t version) const {
    const size_t length = size < sizeof size ? 0 : (size - sizeof size) / sizeof(void*);
    int count = 0;
    while (count < kTableLength && static_cast<size_t>(count) < length && kTable[count].since <= version)
      ++count;
    return count;
  }
};

// A table as it was first offered, with the runtime's own functions.
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

// Null: there are too many, or it was offered before. (When a profiler is attached later, all are offered
// again.)
Offered* Keep(const DispatchTable& table, uint64_t version) {
  for (Offered& place : offered) {
    const DispatchTable* there = nullptr;
    if (place.table.compare_exchange_strong(there, &table, std::memory_order_acq_rel)) {
      place.count = table.count(version);
      memcpy(place.functions, table.functions, sizeof(void*) * static_cast<size_t>(place.count));
      return &place;
    }
    if (there == &table) return nullptr;
  }
  return nullptr;
}

// The instance that offers the table. Null: the table stays unchanged.
Instance* Register(const DispatchTable& table, uint64_t version) {
  const Offered* own = Keep(table, version);
  const void* any = own == nullptr ? nullptr : FirstFunction(*own);
  Runtime* runtime = any == nullptr ? nullptr : RegisterDispatchTable(any, FunctionOf, own);
  const int index = runtime == nullptr ? kMaxInstances : runtime->index();
  if (index >= kMaxInstances) return nullptr;
  instances[index].Register(*runtime);
  return &instances[index];
}

// The wrappers call the functions that are in the table now.
void PutWrappers(Instance& instance, DispatchTable& table, uint64_t version) {
  const int count = table.count(version);
  for (int i = 0; i < count; ++i) {
    if (kTable[i].function >= 0)
      reinterpret_cast<void**>(&instance.table_functions)[kTable[i].function] = table.functions[i];
  }
  instance.by_pointer.store(&instance.table_functions, std::memory_order_release);
  for (int i = 0; i < count; ++i) {
    if (kTable[i].function >= 0 && table.functions[i] != nullptr)
      table.functions[i] = kWrappers[kTable[i].function].by_pointer[&instance - instances];
  }
}

}  // namespace
}  // namespace xsched::hip

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {

// The runtime only checks that this function exists. A profiler calls all of them; we ask for nothing.
XSCHED_EXPORT void* rocprofiler_configure(uint32_t, const char*, uint32_t, void*) { return nullptr; }

// Called for each table of each ROCm library. "hip" is the table of the functions that programs call. A
// profiler gets it before us, so our wrapper calls the profiler's: it sees commands when they are really
// launched.
XSCHED_EXPORT int rocprofiler_set_api_table(const char* name, uint64_t version, uint64_t instance,
                                            void** api_tables, uint64_t count) {
  using namespace xsched::hip;
  const bool is_hip = name != nullptr && strcmp(name, "hip") == 0 && api_tables != nullptr && count != 0;
  auto* table = is_hip ? static_cast<DispatchTable*>(api_tables[0]) : nullptr;
  Instance* offering = table == nullptr ? nullptr : Register(*table, version);
  SetTable* next = ProfilersSetTable();
  const int result = next == nullptr ? 0 : next(name, version, instance, api_tables, count);
  if (offering != nullptr) PutWrappers(*offering, *table, version);
  return result;
}

}  // extern "C"
