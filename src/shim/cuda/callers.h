// Calls from libraries that the user wants to pass unscheduled: XSCHED_PASSTHROUGH_LIBS, names of libraries
// or their beginnings ("libnccl,libmine.so.2"). By default there are none, and asking costs one comparison.
#pragma once

#include <atomic>

namespace xsched::cuda {

enum class PassThrough : int { kUnknown, kNobody, kSome };
extern std::atomic<PassThrough> pass_through;

// `caller`: an address in the code that called.
bool LooksUpPassThrough(const void* caller);
inline bool PassesThrough(const void* caller) {
  return pass_through.load(std::memory_order_relaxed) != PassThrough::kNobody && LooksUpPassThrough(caller);
}

// Libraries have come or gone: callers are looked at anew.
void ForgetCallers();

// Is `library`, a path, in `names`?
bool IsListed(const char* names, const char* library);

}  // namespace xsched::cuda
