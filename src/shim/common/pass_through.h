// Calls that pass unscheduled by the user's rules (pass_rules.h). By default there are none, and the check
// costs one comparison. Otherwise the caller is examined once per call site.
#pragma once

#include <atomic>

namespace xsched::shim {

// The name of one of this shim's functions, for rules of functions. Implemented by each shim.
const char* FunctionName(int function);

enum class PassThrough : int { kUnknown, kNobody, kSome };
extern std::atomic<PassThrough> pass_through;

// `caller`: an address in the code that called `function`.
bool LooksUpPassThrough(const void* caller, int function);
inline bool PassesThrough(const void* caller, int function) {
  return pass_through.load(std::memory_order_relaxed) != PassThrough::kNobody &&
         LooksUpPassThrough(caller, function);
}

// Libraries were unloaded: callers are examined anew.
void ForgetPassThrough();

}  // namespace xsched::shim
