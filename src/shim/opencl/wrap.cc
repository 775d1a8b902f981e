// The generated wrappers, and how they find what they wrap.
#include "shim/opencl/wrap.h"

#pragma GCC visibility push(default)
#include <CL/cl_icd.h>
// After cl_icd.h: it includes what these need.
#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_ext_intel.h>
#include <CL/cl_gl.h>
#include <CL/cl_gl_ext.h>
#include <CL/cl_layer.h>
#if __has_include(<va/va.h>)
#include <CL/cl_va_api_media_sharing_intel.h>
#endif
#pragma GCC visibility pop
#include <dlfcn.h>
#include <string.h>

#include <new>

#include "base/log.h"
#include "shim/common/instances.h"
#include "shim/common/lookup.h"
#include "shim/common/real_dlsym.h"
#include "shim/opencl/calls.h"
#include "shim/opencl/functions.h"
#include "shim/opencl/queues.h"

namespace xsched::opencl {
namespace {

constinit shim::Instances instances[kFunctionCount];

template <typename Function>
Function Next(FunctionId function, int instance) {
  return reinterpret_cast<Function>(instances[function].Real(instance));
}

const OclDriver* DriverOf(FunctionId function, int instance) {
  return static_cast<const OclDriver*>(instances[function].Tag(instance));
}

// A program looked `name` up through OpenCL itself.
void* LookedUp(const char* name, void* found, const OclDriver* driver) {
  return name == nullptr || found == nullptr ? found : WrapperByName(name, found, driver);
}

template <typename Wrappers>
void* Thunk(int instance) {
  switch (instance) {
    case 0:
      return Wrappers::template Get<0>();
    case 1:
      return Wrappers::template Get<1>();
    case 2:
      return Wrappers::template Get<2>();
    case 3:
      return Wrappers::template Get<3>();
    default:
      return nullptr;
  }
}
static_assert(shim::kMaxInstances == 4, "Thunk names each instance");

void* Wrapper(FunctionId function, void* real, const OclDriver* driver);

// A preloaded shim's own cl… function was called: goes on to the next library's, of the caller's scope.
template <typename Function>
Function Exported(FunctionId function) {
  static std::atomic<Function> cached[kFunctionCount];
  Function wrapper = cached[function].load(std::memory_order_acquire);
  if (wrapper != nullptr) return wrapper;
  void* real = shim::RealDlsym()(RTLD_NEXT, kFunctionNames[function]);
  if (real == nullptr) return nullptr;
  wrapper = reinterpret_cast<Function>(Wrapper(function, real, DriverOfLibrary(real)));
  cached[function].store(wrapper, std::memory_order_release);
  return wrapper;
}

// The program calls OpenCL and has not loaded it: no device can come of it.
template <typename Result>
Result Missing(const char* name) {
  XSCHED_WARN("%s was called, but no OpenCL library follows the shim", name);
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else {
    return CL_INVALID_PLATFORM;
  }
}

template <typename Function>
void WrapEntry(Function& entry, FunctionId function, const OclDriver* driver) {
  if (entry == nullptr) return;
  entry = reinterpret_cast<Function>(Wrapper(function, reinterpret_cast<void*>(entry), driver));
}

}  // namespace
}  // namespace xsched::opencl

#include "shim/opencl/wrappers.h"

namespace xsched::opencl {
namespace {

void* Wrapper(FunctionId function, void* real, const OclDriver* driver) {
  int instance = instances[function].Find(real, driver);
  if (instance >= 0) return kThunks[function](instance);
  XSCHED_WARN("more than %d OpenCL runtimes in one process: one of them runs unscheduled", shim::kMaxInstances);
  return real;
}

bool IsOurs(void* address) {
  Dl_info ours;
  Dl_info theirs;
  return dladdr(reinterpret_cast<void*>(&IsOurs), &ours) != 0 && dladdr(address, &theirs) != 0 &&
         ours.dli_fbase == theirs.dli_fbase;
}

}  // namespace

void* WrapperByName(const char* name, void* real, const OclDriver* driver) {
  if (name[0] != 'c' || name[1] != 'l') return real;
  for (int i = 0; i < kFunctionCount; ++i) {
    if (strcmp(name, kFunctionNames[i]) != 0) continue;
    if (IsOurs(real)) return real;
    return Wrapper(static_cast<FunctionId>(i), real, driver != nullptr ? driver : DriverOfLibrary(real));
  }
  return real;
}

const OclDriver* DriverOfLibrary(void* address) {
  struct Known {
    void* base;
    OclDriver driver;
  };
  static Known known[shim::kMaxInstances];
  static Mutex mutex;
  Dl_info info;
  if (dladdr(address, &info) == 0) return nullptr;
  MutexLock lock(mutex);
  for (Known& entry : known) {
    if (entry.base == info.dli_fbase) return &entry.driver;
    if (entry.base != nullptr) continue;
    entry.driver = FindDriver([address](const char* name) { return shim::InSameLibrary(address, name); });
    if (entry.driver.clGetCommandQueueInfo == nullptr) return nullptr;
    entry.base = info.dli_fbase;
    return &entry.driver;
  }
  return nullptr;
}

}  // namespace xsched::opencl

void* xsched::shim::WrapLookedUp(const char* name, void* found) {
  return xsched::opencl::WrapperByName(name, found, nullptr);
}

// ---- the layer (OPENCL_LAYERS) ----

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void* value, size_t* size_ret) {
  constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  constexpr char kName[] = "XSched";
  const void* answer;
  size_t answer_size;
  switch (what) {
    case CL_LAYER_API_VERSION:
      answer = &kVersion;
      answer_size = sizeof kVersion;
      break;
    case CL_LAYER_NAME:
      answer = kName;
      answer_size = sizeof kName;
      break;
    default:
      return CL_INVALID_VALUE;
  }
  if (value != nullptr) {
    if (size < answer_size) return CL_INVALID_VALUE;
    memcpy(value, answer, answer_size);
  }
  if (size_ret != nullptr) *size_ret = answer_size;
  return CL_SUCCESS;
}

cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                               const cl_icd_dispatch** layer_ret) {
  using namespace xsched::opencl;
  if (target == nullptr || entries_ret == nullptr || layer_ret == nullptr) return CL_INVALID_VALUE;
  // A loader older or newer than our headers has a shorter or longer table.
  constexpr cl_uint kOurEntries = sizeof(cl_icd_dispatch) / sizeof(void*);
  struct Layer {
    cl_icd_dispatch table{};
    OclDriver driver{};
  };
  auto* layer = new (std::nothrow) Layer;  // lives as long as the loader
  if (layer == nullptr) return CL_OUT_OF_HOST_MEMORY;
  cl_uint count = entries < kOurEntries ? entries : kOurEntries;
  memcpy(static_cast<void*>(&layer->table), target, count * sizeof(void*));
#define XSCHED_TAKE(name) layer->driver.name = layer->table.name;
  XSCHED_OCL_DRIVER_FUNCTIONS(XSCHED_TAKE)
#undef XSCHED_TAKE
  WrapDispatch(layer->table, &layer->driver);
  *entries_ret = count;
  *layer_ret = &layer->table;
  return CL_SUCCESS;
}
