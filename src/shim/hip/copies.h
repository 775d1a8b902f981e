// Which copy of the HIP runtime a call goes on to (hal/hip/runtime.h), and the functions of each. A call
// finds its copy by one of two ways in:
//
//   by linking   a program calls hipX, and reaches the function that we export: it goes on to the copy that
//                the calling library is bound to, found once per call site
//   by pointer   a function that was looked up in a copy (dlsym, hipGetProcAddress), or an entry of its
//                dispatch table: each copy has wrappers of its own, and the one called says which copy it is
//
// Streams and events are used in the copy that made them, whoever calls.
#pragma once

#include <atomic>

#include "hal/hip/runtime.h"
#include "hip/functions.h"
#include "preempt/launch.h"

namespace xsched::hip {

// As many have ways in by pointer; calls of more copies are scheduled by linking alone.
inline constexpr int kMaxCopies = 8;

struct Copy {
  Runtime* runtime = nullptr;  // written before `exported`, or `by_pointer`, is
  // As programs link to them; null: not looked up so far.
  std::atomic<const WrappedFunctions*> exported{nullptr};
  // What a way in by pointer goes on to: what its dispatch table had before us; without one, as exported.
  std::atomic<const WrappedFunctions*> by_pointer{nullptr};
  WrappedFunctions exported_functions = {};
  WrappedFunctions table_functions = {};
};

extern Copy copies[kMaxRuntimes];

struct Target {
  Copy* copy;
  const WrappedFunctions* next;
};

// The caller's own copy; where there is none, one that has no functions. `site`: where the call returns to.
Target ByLinking(const void* site);
inline Target ByPointer(Copy& copy) { return {&copy, copy.by_pointer.load(std::memory_order_acquire)}; }

// Its functions looked up, if they were not. Null: none such.
Copy* CopyOf(Runtime* runtime);

// The handles that were made in each copy. With one copy alone they are all its.
void Made(Copy& copy, const void* handle);
void Gone(const void* handle);
extern std::atomic<int> copy_count;
// Where a call that uses `handle` goes instead, if another copy made it.
Target TargetOfHandle(const Target& target, const void* handle);

// Libraries have gone.
void ForgetCallers();

inline constexpr hipError_t kNoSuchFunction = hipErrorNotSupported;

// How deep this thread is in wrapped calls: the runtime's exported functions call each other, and the entries
// of its dispatch table. Of the initial-exec kind: one load, and no call of the dynamic linker's.
extern constinit thread_local int call_depth __attribute__((tls_model("initial-exec")));

// One call of one wrapped function.
class Call {
 public:
  Call(const Target& target, int function, const void* site)
      : target_(target), function_(function), site_(site) {
    ++call_depth;
  }
  ~Call() { --call_depth; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The program's own call, not one that a call of its, or XSched, makes in passing.
  bool is_the_programs() const { return call_depth == 1 && !preempt::InsideXSched(); }
  Copy& copy() const { return *target_.copy; }
  const WrappedFunctions& next() const { return *target_.next; }
  // For what its dispatch table does not have.
  const WrappedFunctions& exported() const;
  int function() const { return function_; }
  const void* site() const { return site_; }

  // The call is about `handle`, a stream or event: it goes to the copy that made it.
  void Uses(const void* handle) {
    if (copy_count.load(std::memory_order_relaxed) > 1) [[unlikely]]
      target_ = TargetOfHandle(target_, handle);
  }

 private:
  Target target_;
  const int function_;
  const void* const site_;
};

inline const WrappedFunctions& Call::exported() const {
  const WrappedFunctions* known = copy().exported.load(std::memory_order_acquire);
  return known != nullptr ? *known : next();
}

}  // namespace xsched::hip
