// Arrays of several levels: their memory, and nothing in it. Arrays of one level are in copy.cc.
#include <algorithm>

#include "context.h"
#include "driver.h"
#include "memory.h"

namespace standin {
namespace {

struct Levels {
  size_t size;
};

}  // namespace

CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* array,
                                unsigned int levels) {
  Lock lock;
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr || array == nullptr || array->Width == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t size = 0;
  for (unsigned level = 0; level < levels; ++level)  // elements of four bytes
    size += std::max<size_t>(array->Width >> level, 1) * std::max<size_t>(array->Height >> level, 1) * 4;
  if (!TakeDeviceMemory(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUmipmappedArray>(new Levels{size});
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  Lock lock;
  auto* levels = reinterpret_cast<Levels*>(handle);
  if (levels == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  GiveDeviceMemoryBack(levels->size);
  delete levels;
  return CUDA_SUCCESS;
}

}  // namespace standin
