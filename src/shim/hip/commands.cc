#include "shim/hip/commands.h"

#include <algorithm>

namespace xsched::hip {
namespace {

// Configurations that are nested deeper count as the null stream's, as most are.
constexpr int kMaxConfigurations = 16;
constinit thread_local hipStream_t configured[kMaxConfigurations] = {};
constinit thread_local int configurations = 0;

// The runtime refuses a batch of more, and does not read it.
constexpr unsigned kMaxOperations = 256;

bool IsWrite(const hipStreamBatchMemOpParams& operation) {
  return operation.operation == kHipStreamMemOpWriteValue32 ||
         operation.operation == kHipStreamMemOpWriteValue64;
}

}  // namespace

bool MemoryOperations::OnlyWrites(const hipStreamBatchMemOpParams* operations, unsigned count) {
  return operations != nullptr && count <= kMaxOperations &&
         std::all_of(operations, operations + count, IsWrite);
}

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
