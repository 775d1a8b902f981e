#include "shim/hip/commands.h"

#include "shim/common/call_sites.h"

namespace xsched::shim {

static_assert(hip::kFunctionCount <= CallSites::kQuestions, "passing through is remembered per function");

const char* FunctionName(int function) { return hip::kFunctionNames[function]; }

}  // namespace xsched::shim

namespace xsched::hip {
namespace {

// Deeper ones count as the null stream's, as most are.
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

MultiLaunch::MultiLaunch(const Call& call, const hipLaunchParams* launches, unsigned count) {
  for (unsigned i = 0; launches != nullptr && i < count && i < kMaxStreams; ++i)
    launches_[i].emplace(call, launches[i].stream);
}

MultiLaunch::MultiLaunch(const Call& call, const hipFunctionLaunchParams* launches, unsigned count) {
  for (unsigned i = 0; launches != nullptr && i < count && i < kMaxStreams; ++i)
    launches_[i].emplace(call, launches[i].hStream);
}

void MultiLaunch::Finish(hipError_t result) {
  for (std::optional<Launch>& launch : launches_) {
    if (launch.has_value()) launch->Finish(result, false);
  }
}

}  // namespace xsched::hip
