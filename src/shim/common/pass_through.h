// Calls that the user wants to pass unscheduled (pass_rules.h). By default there are none, and asking costs
// one comparison; else the caller is looked at once per call site.
#pragma once

#include <atomic>

namespace xsched::shim {

// The name of one of this shim's functions, for what is said of functions. Implemented by each shim.
const char* FunctionName(int function);

enum class PassThrough : int { kUnknown, kNobody, kSome };
extern std::atomic<PassThrough> pass_through;

// `caller`: an address in the code that called `function`.
bool LooksUpPassThrough(const void* caller, int function);
inline bool PassesThrough(const void* caller, int function) {
  return pass_through.load(std::memory_order_relaxed) != PassThrough::kNobody &&
         LooksUpPassThrough(caller, function);
}

// Libraries have gone: callers are looked at anew.
void ForgetPassThrough();

}  // namespace xsched::shim
