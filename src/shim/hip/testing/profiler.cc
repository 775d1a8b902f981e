// A profiler that uses the dispatch table: it counts the calls of one function, and returns what a test sets.
#include <stdint.h>
#include <string.h>

#include "hip/functions.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace xsched::hip;

namespace {

constexpr int kFunction = [] {
  int number = 0;
  int found = -1;
#define XSCHED_TABLE_ENTRY(name, since)                               \
  if (__builtin_strcmp(#name, "hipMemsetAsync") == 0) found = number; \
  ++number;
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
  return found;
}();
static_assert(kFunction >= 0);

using Set = hipError_t(void*, int, size_t, hipStream_t);
Set* next = nullptr;
int calls = 0;
int answer = 0;
int tables_seen = 0;

hipError_t Count(void* dst, int value, size_t size, hipStream_t stream) {
  ++calls;
  return next(dst, value, size, stream);
}

}  // namespace

EXPORT void* rocprofiler_configure(uint32_t, const char*, uint32_t, void*) { return nullptr; }

EXPORT int rocprofiler_set_api_table(const char* name, uint64_t, uint64_t, void** tables, uint64_t) {
  ++tables_seen;
  if (strcmp(name, "hip") != 0) return answer;
  void*& entry = static_cast<void**>(tables[0])[1 + kFunction];
  if (entry == reinterpret_cast<void*>(&Count)) return answer;
  next = reinterpret_cast<Set*>(entry);
  entry = reinterpret_cast<void*>(&Count);
  return answer;
}

EXPORT int ProfilerCalls() { return calls; }
EXPORT int ProfilerTables() { return tables_seen; }
EXPORT void ProfilerAnswers(int with) { answer = with; }
