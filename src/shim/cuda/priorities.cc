#include "shim/cuda/priorities.h"

#include <algorithm>

#include "hal/cuda/queue.h"

namespace xsched::cuda {
namespace {

// As the driver does with a priority that is beyond its range.
int Nearest(const Functions& next, int priority) {
  int least = 0;
  int greatest = 0;
  const auto range = next.cuCtxGetStreamPriorityRange;
  if (range == nullptr || range(&least, &greatest) != CUDA_SUCCESS) return priority;
  return std::clamp(priority, greatest, least);
}

void Note(uint64_t key, int priority) {
  CudaOwnPriorityIs(key, priority);
  if (preempt::XQueue* queue = shim::FindQueue(key)) preempt::DriverPriorityChanged(queue);
}

}  // namespace

void PriorityQuery::Finish(CUresult result, int* priority) const {
  if (result == CUDA_SUCCESS && priority != nullptr)
    CudaOwnPriority(Platform::KeyOf(call_, stream_), priority);
}

void PriorityQuery::Finish(CUresult result, CUstreamAttrID attribute, CUstreamAttrValue* value) const {
  if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY && value != nullptr) Finish(result, &value->priority);
}

void PrioritySetting::Finish(CUresult result, CUstreamAttrID attribute,
                             const CUstreamAttrValue* value) const {
  if (result != CUDA_SUCCESS || attribute != CU_STREAM_ATTRIBUTE_PRIORITY || value == nullptr) return;
  preempt::ReentrancyGuard guard;
  // Not what the driver says now: XSched may have set it again.
  Note(Platform::KeyOf(call_, stream_), Nearest(call_.next(), value->priority));
}

void PriorityCopy::Finish(CUresult result) const {
  if (result != CUDA_SUCCESS) return;
  preempt::ReentrancyGuard guard;
  const Functions& next = call_.next();
  CUstreamAttrValue value{};
  if (CudaOwnPriority(Platform::KeyOf(call_, from_), &value.priority)) {
    if (next.cuStreamSetAttribute == nullptr) return;
    next.cuStreamSetAttribute(to_, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
  } else if (next.cuStreamGetPriority == nullptr ||
             next.cuStreamGetPriority(from_, &value.priority) != CUDA_SUCCESS) {
    return;
  }
  Note(Platform::KeyOf(call_, to_), value.priority);
}

}  // namespace xsched::cuda
