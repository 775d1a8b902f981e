// One call of a wrapped function. The wrapper passes it to the scope. The call goes to the caller's runtime
// instance (instances.h). But if there are several instances, a stream, event, function or graph is used in
// the instance that made it, whoever calls.
#pragma once

#include <atomic>

#include "preempt/api/launch.h"
#include "shim/hip/instances.h"

namespace xsched::hip {

// The object of a call: made by an instance, or a function or variable of the program, which belongs to the
// instance that its library is linked to. A kernel's handle may stand in the place of a function.
struct Handle {
  const void* value;
  explicit Handle(const void* handle) : value(handle) {}
};
struct Code {
  const void* address;
  explicit Code(const void* code) : address(code) {}
};

inline constexpr hipError_t kNoSuchFunction = hipErrorNotSupported;

// The stack address of this thread's outermost call. The runtime's exported functions call each other and the
// entries of its dispatch table, so calls nest. Null: there is none. With the initial-exec model, reading it
// is one load, without a call of the dynamic linker.
//
// The runtime's functions throw, and catch that outside of our wrapper. If the call then ends without its
// destructor (unwinding.cc says when), this address is stale. It is stale if the stack was unwound beyond it:
// nested calls are further down.
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

  // False for nested calls.
  bool is_outermost() const { return is_outermost_; }
  // True for the program's own call. False for nested calls and calls of XSched.
  bool is_the_programs() const { return is_outermost_ && !preempt::InsideXSched(); }
  Instance& instance() const { return *target_.instance; }
  const WrappedFunctions& next() const { return *target_.next; }
  // The exported functions, for those that its dispatch table does not have.
  const WrappedFunctions& exported() const;
  int function() const { return function_; }
  const void* site() const { return site_; }

  // The objects of the call. The first one whose instance is known decides where the call goes.
  template <typename... Things>
  void Uses(Things... things) {
    if (instance_count.load(std::memory_order_relaxed) > 1) [[unlikely]]
      static_cast<void>((GoesBy(things) || ...));
  }
  // The instance has made *handle. Null: the program did not ask for the handle.
  template <typename Object>
  void Made(const Object* handle) const {
    if (handle != nullptr) Remember(*handle);
  }
  // The nodes of a graph that were listed, `count` of them. They may be captured ones, of which no call has
  // told so far.
  void MadeNodes(const hipGraphNode_t* nodes, const size_t* count) const;
  void MadeEdges(const hipGraphNode_t* from, const hipGraphNode_t* to, const size_t* count) const {
    MadeNodes(from, count);
    MadeNodes(to, count);
  }
  // What a stream is capturing. If it captures nothing, the runtime leaves what the program has in the places
  // of graph and nodes, and that may be anything.
  void MadeCapture(const hipStreamCaptureStatus* status, const hipGraph_t* graph,
                   const hipGraphNode_t* const* nodes, const size_t* count) const;
  // The kernels that were enumerated: as many as were wanted, or as the library has.
  void MadeKernels(const hipKernel_t* kernels, unsigned wanted, hipLibrary_t library) const;
  // The handle may be reused from now on.
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
