#include "shim/hip/commands.h"

namespace xsched::hip {
namespace {

// Configurations that are nested deeper count as the null stream's, as most are.
constexpr int kMaxConfigurations = 16;
constinit thread_local hipStream_t configured[kMaxConfigurations] = {};
constinit thread_local int configurations = 0;

}  // namespace

void Configuration::Finish(hipError_t result, hipStream_t stream) {
  if (result != hipSuccess) return;
  if (configurations < kMaxConfigurations) configured[configurations] = stream;
  ++configurations;
}

hipStream_t ConfiguredLaunch::TakeStream() {
  if (configurations == 0) return nullptr;
  --configurations;
  return configurations < kMaxConfigurations ? configured[configurations] : nullptr;
}

}  // namespace xsched::hip
