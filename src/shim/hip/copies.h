// Which copy of the HIP runtime a call goes on to (hal/hip/runtime.h), and the functions of each. A call
// finds its copy by one of two ways in:
//
//   by linking   a program calls hipX, and reaches the function that we export: it goes on to the copy that
//                the calling library is bound to, found once per call site
//   by pointer   a function that was looked up in a copy (dlsym, hipGetProcAddress), or an entry of its
//                dispatch table: each copy has wrappers of its own, and the one called says which copy it is
//
// Then, where there are several: streams, events, functions and graphs are used in the copy that made them,
// whoever calls.
#pragma once

#include <atomic>

#include "hal/hip/runtime.h"
#include "hip/functions.h"
#include "preempt/api/launch.h"

namespace xsched::hip {

// As many have ways in by pointer; calls of more copies are scheduled by linking alone.
inline constexpr int kMaxCopies = 8;

class Copy {
 public:
  // Once per copy is enough; its tables are set after it.
  void Meet(Runtime& runtime);
  // REQUIRES: it was met.
  Runtime& runtime() const { return *runtime_.load(std::memory_order_acquire); }

  // As programs link to them; null: not looked up so far.
  std::atomic<const WrappedFunctions*> exported{nullptr};
  // What a way in by pointer goes on to: what its dispatch table had before us; without one, as exported.
  std::atomic<const WrappedFunctions*> by_pointer{nullptr};
  WrappedFunctions exported_functions = {};
  WrappedFunctions table_functions = {};

 private:
  std::atomic<Runtime*> runtime_{nullptr};
};

extern Copy copies[kMaxRuntimes];
// How many were met.
extern std::atomic<int> copy_count;

struct Target {
  Copy* copy;
  const WrappedFunctions* next;
};

// The caller's own copy; where there is none, one that has no functions. `site`: where the call returns to.
Target ByLinking(const void* site);
inline Target ByPointer(Copy& copy) { return {&copy, copy.by_pointer.load(std::memory_order_acquire)}; }

// Its functions looked up, if they were not. Null: none such.
Copy* CopyOf(Runtime* runtime);

// `site` is bound to the copy: told once per library.
void TellBinding(const void* site, const Copy& copy);
// Libraries have gone.
void ForgetCallers();

// What a call is about: what a copy has made, or a function or variable of the program's own, which belongs
// to the copy that its library is linked to.
struct Handle {
  const void* value;
  explicit Handle(const void* handle) : value(handle) {}
};
struct Code {
  const void* address;
  explicit Code(const void* code) : address(code) {}
};

inline constexpr hipError_t kNoSuchFunction = hipErrorNotSupported;

// Where on its stack this thread is in a call that makes other calls of wrapped functions in passing: the
// runtime's exported functions call each other, and the entries of its dispatch table. Null: in none. Of the
// initial-exec kind: one load, and no call of the dynamic linker's.
//
// A call may end without its destructor: the runtime's functions throw, and catch that in front of us. So
// this may be over. It is, if the stack has been unwound up to there: what it makes is further down.
extern constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec")));
inline bool IsInsideCall(const void* frame) { return frame < outermost_call; }

// One call of one wrapped function.
class Call {
 public:
  [[gnu::always_inline]] Call(const Target& target, int function, const void* site)
      : target_(target),
        function_(function),
        is_outermost_(!IsInsideCall(__builtin_frame_address(0))),
        site_(site) {
    if (is_outermost_) outermost_call = __builtin_frame_address(0);
  }
  ~Call() {
    if (is_outermost_) outermost_call = nullptr;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The program's own call, not one that a call of its, or XSched, makes in passing.
  bool is_the_programs() const { return is_outermost_ && !preempt::InsideXSched(); }
  Copy& copy() const { return *target_.copy; }
  const WrappedFunctions& next() const { return *target_.next; }
  // For what its dispatch table does not have.
  const WrappedFunctions& exported() const;
  int function() const { return function_; }
  const void* site() const { return site_; }

  // What the call is about: the first that a copy is known for decides where it goes.
  template <typename... Things>
  void Uses(Things... things) {
    if (copy_count.load(std::memory_order_relaxed) > 1) [[unlikely]]
      static_cast<void>((GoesBy(things) || ...));
  }
  // What *handle is now, the copy has made. Null: the program did not want it.
  template <typename Object>
  void Made(const Object* handle) const {
    if (handle != nullptr) Remember(*handle);
  }
  // The handle may be another's from now on.
  void Ends(const void* handle) const;

 private:
  bool GoesBy(Handle handle);
  bool GoesBy(Code code);
  void Remember(const void* handle) const;

  Target target_;
  const int function_;
  const bool is_outermost_;
  const void* const site_;
};

inline const WrappedFunctions& Call::exported() const {
  const WrappedFunctions* known = copy().exported.load(std::memory_order_acquire);
  return known != nullptr ? *known : next();
}

}  // namespace xsched::hip
