// The exported part of a stand-in for the HIP runtime, built like AMD's since ROCm 6.2: exported functions
// call through a dispatch table, which is offered to tools before the first one runs. The functions behind
// the table are those of hal/hip/testing/fake_runtime.cc and own_functions.cc, under other names. If these
// have none, a function here launches a command or does nothing. Their exceptions are caught in front of the
// table, as in ROCm 7.
#include "shim/hip/testing/offered_runtime.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

template <typename Result>
Result As(hipError_t error) {
  if constexpr (std::is_pointer_v<Result>)
    return nullptr;
  else
    return static_cast<Result>(error);
}

}  // namespace

// ---- behind the table ----

#define XSCHED_FUNCTION(result, name, symbol, parameters, arguments, launches, stream)  \
  extern "C" __attribute__((visibility("hidden"), weak)) result Own_##name parameters { \
    return As<result>(launches ? FakeLaunch stream : hipSuccess);                       \
  }
#include "hip/standin.inc"
#undef XSCHED_FUNCTION

// ---- the table ----

namespace {

const char* const kTableNames[] = {
#define XSCHED_TABLE_ENTRY(name, since) #name,
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
};

struct Named {
  std::string_view symbol;
  void* function;
};
const Named kOwn[] = {
#define XSCHED_FUNCTION(result, name, symbol, parameters, arguments, launches, stream) \
  {symbol, reinterpret_cast<void*>(&Own_##name)},
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
};

// Null: there is none of that name.
void* Find(std::span<const Named> functions, std::string_view symbol) {
  for (const Named& function : functions) {
    if (function.symbol == symbol) return function.function;
  }
  return nullptr;
}

std::atomic<uint64_t> offered_length{0};
std::atomic<uint64_t> offered_version{UINT32_MAX};
std::atomic<uint64_t> offered_instance{0};
std::atomic<int> offer_result{-1};

void* Ours(const char* symbol) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&FakeOfferTable), &info) == 0) return nullptr;
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* found = dlsym(library, symbol);
  dlclose(library);
  return found;
}

// Pointers to functions, behind their size in bytes.
using Words = std::vector<uintptr_t>;
uintptr_t WordOf(const void* function) { return reinterpret_cast<uintptr_t>(function); }

class Table {
 public:
  Table() : words_(1 + offered_length) {
    words_[0] = words_.size() * sizeof words_[0];
    for (size_t i = 0; i + 1 < words_.size(); ++i) words_[i + 1] = WordOf(Function(i));
    if (words_.size() > 1) Offer();
  }

  // As rocprofiler-register does.
  void Offer() {
    using SetTable = int(const char*, uint64_t, uint64_t, void**, uint64_t);
    const char* named = getenv("ROCPROFILER_REGISTER_LIBRARY");
    if (dlsym(RTLD_DEFAULT, "rocprofiler_configure") == nullptr && named == nullptr) return;
    constexpr char kSetTable[] = "rocprofiler_set_api_table";
    void* set = dlsym(RTLD_DEFAULT, kSetTable);
    if (set == nullptr && named != nullptr) set = dlsym(dlopen(named, RTLD_LAZY | RTLD_GLOBAL), kSetTable);
    if (set == nullptr) return;
    void* compilers[] = {compilers_.data()};
    reinterpret_cast<SetTable*>(set)("hip_compiler", 60400, offered_instance, compilers, 1);
    void* tables[] = {words_.data()};
    offer_result = reinterpret_cast<SetTable*>(set)("hip", offered_version, offered_instance, tables, 1);
  }

  void* entry(size_t number) const {
    return number + 1 < words_.size() ? reinterpret_cast<void*>(words_[number + 1]) : nullptr;
  }
  bool compilers_is_whole() const { return compilers_ == CompilersTable(); }

 private:
  // Entries that nobody calls have any function.
  static void* Function(size_t number) {
    if (number < std::size(kTableNames)) {
      if (void* own = Find(kOwn, kTableNames[number])) return own;
      if (void* ours = Ours(kTableNames[number])) return ours;
    }
    return reinterpret_cast<void*>(&FakeOfferTable);
  }
  static Words CompilersTable() {
    return {3 * sizeof(uintptr_t), WordOf(reinterpret_cast<void*>(&FakeOfferTable)),
            WordOf(reinterpret_cast<void*>(&FakeExported))};
  }

  Words words_;
  Words compilers_ = CompilersTable();
};

Table& GetTable() {
  static Table table;
  return table;
}

// ---- as programs link to it ----

class Entry;
std::mutex mutex;
std::map<std::string, Entry*> entries;

class Entry {
 public:
  Entry(const char* symbol, void* own) : own_(own) {
    for (number_ = 0; number_ < std::size(kTableNames); ++number_) {
      if (std::string_view(symbol) == kTableNames[number_]) break;
    }
    std::lock_guard lock(mutex);
    entries[symbol] = this;
  }

  // The target of a call.
  template <typename Function>
  Function* Called() {
    void* in_table = GetTable().entry(number_);
    ++calls_;
    return reinterpret_cast<Function*>(in_table != nullptr ? in_table : own_);
  }
  int calls() const { return calls_; }

 private:
  size_t number_;  // in the table; beyond its end: it has none such
  void* const own_;
  std::atomic<int> calls_{0};
};

}  // namespace

#define XSCHED_FUNCTION(result, name, symbol, parameters, arguments, launches, stream) \
  extern "C" result name parameters __asm__(symbol);                                   \
  EXPORT result name parameters {                                                      \
    static Entry entry(symbol, reinterpret_cast<void*>(&Own_##name));                  \
    try {                                                                              \
      return entry.Called<decltype(Own_##name)>() arguments;                           \
    } catch (...) {                                                                    \
      return As<result>(hipErrorOutOfMemory);                                          \
    }                                                                                  \
  }
#include "hip/standin.inc"
#undef XSCHED_FUNCTION

EXPORT void FakeOfferVersion(uint64_t version) { offered_version = version; }

EXPORT void FakeOfferTable(uint64_t length, uint64_t instance) {
  offered_length = length;
  offered_instance = instance;
}

EXPORT void FakeOfferAgain() { GetTable().Offer(); }
EXPORT int FakeOfferResult() { return offer_result; }
EXPORT void* FakeTableEntry(uint64_t number) { return GetTable().entry(number); }
EXPORT int FakeCompilerTableIsWhole() { return GetTable().compilers_is_whole(); }

EXPORT int FakeCallsOf(const char* symbol) {
  std::lock_guard lock(mutex);
  auto found = entries.find(symbol);
  return found == entries.end() ? 0 : found->second->calls();
}

// By their addresses, because a lookup would return wrappers.
EXPORT void* FakeExported(const char* symbol) {
  static const Named exported[] = {
#define XSCHED_FUNCTION(result, name, symbol, parameters, arguments, launches, stream) \
  {symbol, reinterpret_cast<void*>(&name)},
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
  };
  void* found = Find(exported, symbol);
  return found != nullptr ? found : Ours(symbol);
}
