// Green contexts: parts of a device's multiprocessors with streams of their own, which share the memory of
// the device's primary context. As cuda.h documents them. The parts are only counted: kernels of all streams
// take turns on the one engine.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "context.h"
#include "driver.h"
#include "event.h"
#include "stream.h"

namespace standin {
namespace {

// Of an H200.
constexpr unsigned kMultiprocessors = 132, kSmallestPart = 8;

struct Description {
  unsigned multiprocessors;
};

// The green context is the context that a program gets from it.
Context* FindGreen(CUgreenCtx handle) {
  Context* context = FindContext(reinterpret_cast<CUcontext>(handle));
  return context != nullptr && context->primary_of_green != nullptr ? context : nullptr;
}

CUdevResource Part(unsigned multiprocessors) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = multiprocessors;
  resource.sm.minSmPartitionSize = resource.sm.smCoscheduledAlignment = kSmallestPart;
  return resource;
}

std::unordered_map<const Context*, unsigned>& Parts() {
  static auto* const parts = new std::unordered_map<const Context*, unsigned>;
  return *parts;
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* out, CUdevResourceType type) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = Part(kMultiprocessors);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* out, CUdevResourceType type) {
  Lock lock;
  const Context* green = FindGreen(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = Part(Parts()[green]);
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* out, unsigned int* groups, const CUdevResource* whole,
                                     CUdevResource* rest, unsigned int, unsigned int at_least) {
  if (groups == nullptr || whole == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (whole->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const unsigned each =
      std::max((at_least + kSmallestPart - 1) / kSmallestPart * kSmallestPart, kSmallestPart);
  const unsigned possible = whole->sm.smCount / each;
  *groups = out == nullptr ? possible : std::min(*groups, possible);
  if (out == nullptr) return CUDA_SUCCESS;
  std::fill_n(out, *groups, Part(each));
  if (rest != nullptr) *rest = Part(whole->sm.smCount - *groups * each);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources, unsigned int count) {
  if (out == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  unsigned multiprocessors = 0;
  for (unsigned i = 0; i < count; ++i) multiprocessors += resources[i].sm.smCount;
  Lock lock;
  // Kept for ever: there is no call that ends a descriptor.
  static auto* const descriptions = new std::deque<Description>;
  *out = reinterpret_cast<CUdevResourceDesc>(&descriptions->emplace_back(Description{multiprocessors}));
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc description, CUdevice device,
                          unsigned int flags) {
  if (out == nullptr || description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  CUcontext primary = nullptr;
  if (const CUresult refused = standin::cuDevicePrimaryCtxRetain(&primary, device)) return refused;
  Lock lock;
  Context* green = NewContext(*DeviceAt(device), false);
  green->primary_of_green = FindContext(primary);
  Parts()[green] = reinterpret_cast<const Description*>(description)->multiprocessors;
  *out = reinterpret_cast<CUgreenCtx>(green);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle) {
  CUdevice device = 0;
  {
    Lock lock;
    Context* green = FindGreen(handle);
    if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    while (DeviceAt(device) != green->device) ++device;
    AwaitContext(lock, *green);
    Parts().erase(green);
    Retire(*green);
  }
  return standin::cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  Lock lock;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* green = FindGreen(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = HandleOf(green);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  Lock lock;
  const Context* green = handle == nullptr ? CurrentContext() : FindGreen(handle);
  if (green == nullptr || green->primary_of_green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = green->id;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx handle, unsigned int flags, int priority) {
  Lock lock;
  Context* green = FindGreen(handle);
  if (green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *out = HandleOf(NewStream(*green, flags, priority));
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  Context* primary = stream->context->primary_of_green;
  if (primary != nullptr && stream->kind == Stream::Kind::kPerThread) return CUDA_ERROR_INVALID_HANDLE;
  *context = HandleOf(primary != nullptr ? primary : stream->context);
  *green = primary != nullptr ? reinterpret_cast<CUgreenCtx>(stream->context) : nullptr;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  CUcontext context = nullptr;
  return standin::cuStreamGetCtx_v2(handle, &context, green);
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event) {
  return standin::cuCtxRecordEvent(reinterpret_cast<CUcontext>(handle), event);
}
CUresult cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event) {
  return standin::cuCtxWaitEvent(reinterpret_cast<CUcontext>(handle), event);
}

}  // namespace standin
