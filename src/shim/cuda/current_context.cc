#include "shim/cuda/current_context.h"

#include "shim/cuda/driver.h"

namespace xsched::cuda {
namespace {

// One question per so many uses costs less than a nanosecond each.
constexpr uint32_t kUses = 64;

}  // namespace

constinit thread_local RememberedContext remembered_context __attribute__((tls_model("initial-exec")));

CUcontext RememberCurrentContext() {
  const CUcontext context = CurrentContext();
  remembered_context = {context, context == nullptr ? 0 : kUses};
  return context;
}

}  // namespace xsched::cuda
