// One call of one wrapped function, as its wrapper hands it to its scope. It goes on to the runtime instance
// that it came in by (instances.h) but, where there are several: streams, events, functions and graphs are
// used in the instance that made them, whoever calls.
#pragma once

#include <atomic>

#include "preempt/api/launch.h"
#include "shim/hip/instances.h"

namespace xsched::hip {

// What a call is about: what an instance has made, or a function or variable of the program's own, which
// belongs to the instance that its library is linked to.
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
  Instance& instance() const { return *target_.instance; }
  const WrappedFunctions& next() const { return *target_.next; }
  // For what its dispatch table does not have.
  const WrappedFunctions& exported() const;
  int function() const { return function_; }
  const void* site() const { return site_; }

  // What the call is about: the first that an instance is known for decides where it goes.
  template <typename... Things>
  void Uses(Things... things) {
    if (instance_count.load(std::memory_order_relaxed) > 1) [[unlikely]]
      static_cast<void>((GoesBy(things) || ...));
  }
  // What *handle is now, the instance has made. Null: the program did not want it.
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
  const WrappedFunctions* known = instance().exported.load(std::memory_order_acquire);
  return known != nullptr ? *known : next();
}

}  // namespace xsched::hip
