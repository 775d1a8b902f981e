// The outside of a stand-in for the HIP runtime, built as AMD's is since ROCm 6.2: exported functions that go
// through a dispatch table, which is offered to tools before the first one runs. What is behind the table is
// hal/hip/testing/fake_runtime.cc, under other names; where that has nothing, a function is here that
// launches a command or does nothing.
#include "shim/hip/testing/offered_runtime.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "hal/hip/testing/fake_runtime.h"
#include "hip/functions.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace xsched::hip;

namespace {

template <bool kPerThread>
hipStream_t ActualStream(hipStream_t stream) {
  return kPerThread && stream == nullptr ? kHipStreamPerThread : stream;
}

}  // namespace

// ---- behind the table ----

#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream)              \
  extern "C" __attribute__((visibility("hidden"), weak)) hipError_t Own_##name parameters { \
    return launches ? FakeLaunch stream : hipSuccess;                                       \
  }
#include "hip/standin.inc"
#undef XSCHED_FUNCTION

// ---- the table ----

namespace {

const char* const kTableNames[] = {
#define XSCHED_TABLE_ENTRY(name) #name,
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
};

const std::map<std::string, void*> kOwn = {
#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream) \
  {symbol, reinterpret_cast<void*>(&Own_##name)},
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
};

std::atomic<uint64_t> offered_length{0};
std::atomic<uint64_t> offered_instance{0};
std::mutex mutex;
std::map<std::string, int> calls;

void* Ours(const char* symbol) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&FakeOfferTable), &info) == 0) return nullptr;
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* found = dlsym(library, symbol);
  dlclose(library);
  return found;
}

class Table {
 public:
  Table() : words_(1 + offered_length) {
    words_[0] = words_.size() * sizeof words_[0];
    for (size_t i = 0; i + 1 < words_.size(); ++i) words_[i + 1] = reinterpret_cast<uintptr_t>(Function(i));
    if (words_.size() > 1) Offer();
  }

  void* entry(size_t number) const {
    return number + 1 < words_.size() ? reinterpret_cast<void*>(words_[number + 1]) : nullptr;
  }
  // What a call goes to.
  void* For(const std::string& symbol) const {
    for (size_t i = 0; i + 1 < words_.size() && i < std::size(kTableNames); ++i) {
      if (symbol == kTableNames[i]) return entry(i);
    }
    return kOwn.at(symbol);
  }

 private:
  static void* Function(size_t number) {
    if (number >= std::size(kTableNames)) return reinterpret_cast<void*>(&FakeOfferTable);  // some function
    auto own = kOwn.find(kTableNames[number]);
    return own != kOwn.end() ? own->second : Ours(kTableNames[number]);
  }

  // As rocprofiler-register does.
  void Offer() {
    using SetTable = int(const char*, uint64_t, uint64_t, void**, uint64_t);
    if (dlsym(RTLD_DEFAULT, "rocprofiler_configure") == nullptr) return;
    auto* set = reinterpret_cast<SetTable*>(dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table"));
    void* tables[] = {words_.data()};
    if (set != nullptr) set("hip", 60400, offered_instance, tables, 1);
  }

  std::vector<uintptr_t> words_;
};

const Table& GetTable() {
  static const Table table;
  return table;
}

void* Entry(const char* symbol) {
  void* function = GetTable().For(symbol);
  std::lock_guard lock(mutex);
  ++calls[symbol];
  return function;
}

}  // namespace

// ---- as programs link to it ----

#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream) \
  extern "C" hipError_t name parameters __asm__(symbol);                       \
  EXPORT hipError_t name parameters {                                          \
    return reinterpret_cast<decltype(&Own_##name)>(Entry(symbol)) arguments;   \
  }
#include "hip/standin.inc"
#undef XSCHED_FUNCTION

EXPORT void FakeOfferTable(uint64_t length, uint64_t instance) {
  offered_length = length;
  offered_instance = instance;
}

EXPORT int FakeCallsOf(const char* symbol) {
  std::lock_guard lock(mutex);
  return calls[symbol];
}

// By their addresses: to look them up would give wrappers.
EXPORT void* FakeExported(const char* symbol) {
  static const std::map<std::string, void*> exported = {
#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream) \
  {symbol, reinterpret_cast<void*>(&name)},
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
  };
  auto found = exported.find(symbol);
  return found != exported.end() ? found->second : Ours(symbol);
}
EXPORT void* FakeTableEntry(uint64_t number) { return GetTable().entry(number); }
