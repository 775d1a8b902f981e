#include "shim/common/verbose_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <atomic>
#include <cstdint>

#include "base/env.h"
#include "base/standard_error.h"

namespace xsched::shim {
namespace {

// Further libraries may be logged more than once.
constexpr int kMaxLibraries = 256;
constinit std::atomic<uintptr_t> logged[2][kMaxLibraries] = {};

bool Verbose() {
  static constinit std::atomic<int> verbose{-1};
  int known = verbose.load(std::memory_order_relaxed);
  if (known < 0) {
    known = EnvBool("XSCHED_VERBOSE").value_or(false);
    verbose.store(known, std::memory_order_relaxed);
  }
  return known != 0;
}

}  // namespace

bool IsFirst(Logged what, const link_map* library) {
  if (!Verbose()) return false;
  // 1 stands for generated code; 0 is a free place.
  const uintptr_t wanted = library == nullptr ? 1 : reinterpret_cast<uintptr_t>(library);
  for (std::atomic<uintptr_t>& place : logged[static_cast<int>(what)]) {
    uintptr_t known = 0;
    if (place.compare_exchange_strong(known, wanted, std::memory_order_relaxed)) return true;
    if (known == wanted) return false;
  }
  return true;
}

void Log(const char* format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  int size = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (size <= 0) return;
  if (size >= static_cast<int>(sizeof line)) {
    size = sizeof line - 1;
    line[size - 1] = '\n';
  }
  WriteToStandardError(line, static_cast<size_t>(size));
}

const char* NameForPeople(const link_map* library) {
  if (library == nullptr) return "generated code";
  return library->l_name[0] == '\0' ? program_invocation_name : library->l_name;
}

}  // namespace xsched::shim
