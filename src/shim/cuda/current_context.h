// Remembers the calling thread's current context. Each launch needs it, and asking the driver takes 20 ns.
//
// The wrappers of the calls that change it forget it. In case the driver has other ways to change it
// (cuGetExportTable), it is asked again after some uses. Until then, commands on a default stream are counted
// as the former context's: they run, and their real queue is held and charged a little too late.
#pragma once

#include <cstdint>

#include "cuda/functions.h"

namespace xsched::cuda {

class Call;

struct RememberedContext {
  CUcontext context = nullptr;
  uint32_t uses_left = 0;
};
extern constinit thread_local RememberedContext remembered_context __attribute__((tls_model("initial-exec")));

// Asks the driver, and remembers its answer. That there is none is not remembered.
CUcontext RememberCurrentContext();

// Null: none is current.
[[gnu::always_inline]] inline CUcontext KnownContext() {
  if (remembered_context.uses_left == 0) [[unlikely]]
    return RememberCurrentContext();
  --remembered_context.uses_left;
  return remembered_context.context;
}
inline void ForgetCurrentContext() { remembered_context.uses_left = 0; }

// The scope of a call that changes the calling thread's current context.
class ContextSwitch {
 public:
  explicit ContextSwitch(const Call&) {}
  void Finish(CUresult) const { ForgetCurrentContext(); }
};

}  // namespace xsched::cuda
