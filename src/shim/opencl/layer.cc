// The shim as an OpenCL layer (OPENCL_LAYERS): the loader calls clInitLayer with the functions below, and
// calls ours from then on.
#include <stdlib.h>
#include <string.h>

#include "base/libraries.h"
#include "opencl/wrappers.h"
#include "shim/opencl/routes.h"

using namespace xsched::opencl;

namespace {

// The entry of a loader's table at `offset`; null if the table, of `size` bytes, ends before it.
void** Entry(void* table, size_t size, size_t offset) {
  return offset == kNotInDispatch || offset >= size
             ? nullptr
             : reinterpret_cast<void**>(static_cast<char*>(table) + offset);
}

cl_int Answer(const void* value, size_t size, size_t room, void* out, size_t* size_out) {
  if (out != nullptr && room < size) return CL_INVALID_VALUE;
  if (out != nullptr) memcpy(out, value, size);
  if (size_out != nullptr) *size_out = size;
  return CL_SUCCESS;
}

}  // namespace

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t room, void* out, size_t* size_out) {
  static constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  static constexpr char kName[] = "XSched";
  switch (what) {
    case CL_LAYER_API_VERSION:
      return Answer(&kVersion, sizeof kVersion, room, out, size_out);
    case CL_LAYER_NAME:
      return Answer(kName, sizeof kName, room, out, size_out);
    default:
      return CL_INVALID_VALUE;
  }
}

// A newer loader than our headers has more entries, which pass through. An older one has fewer.
cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_out,
                               const cl_icd_dispatch** layer_out) {
  if (entries == 0 || target == nullptr || entries_out == nullptr || layer_out == nullptr)
    return CL_INVALID_VALUE;
  const size_t size = entries * sizeof(void*);
  void* table = malloc(size);  // never freed: the loader uses it
  if (table == nullptr) return CL_OUT_OF_HOST_MEMORY;
  memcpy(table, target, size);
  Functions next{};
  for (int i = 0; i < kFunctionCount; ++i) {
    if (void** entry = Entry(table, size, kWrappers[i].dispatch_offset)) FunctionAt(next, i) = *entry;
  }
  if (Route* route = AddRoute(next, nullptr)) {
    // Keep the library: gates may be opened after the program has closed it, and a reloaded one would need
    // another route.
    xsched::OpenLibrary(xsched::LibraryAt(__builtin_return_address(0))).KeepForGood();
    for (int i = 0; i < kFunctionCount; ++i) {
      void** entry = Entry(table, size, kWrappers[i].dispatch_offset);
      void* wrapper = kWrappers[i].via[IndexOf(*route)];
      if (entry != nullptr && *entry != nullptr && wrapper != nullptr) *entry = wrapper;
    }
  }
  *entries_out = entries;
  *layer_out = static_cast<const cl_icd_dispatch*>(table);
  return CL_SUCCESS;
}
