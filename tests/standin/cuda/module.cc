// Modules, libraries, functions, and launching them.
//
// Loading a module waits for the work of the context. A library is loaded into a context at its first use
// there, and that use waits (lazy loading, the real driver's default).
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver.h"
#include "kernels.h"
#include "stream.h"

namespace standin {
namespace {

struct Module {
  Context* context;
};

struct Library {
  std::set<uint64_t> loaded_in;  // ids of contexts
};

// What CUfunction and CUkernel point to. Never freed, because programs keep such handles forever; those of
// unloaded code come back.
struct Function {
  const Kernel* kernel;
  Module* module = nullptr;    // of a CUfunction
  Library* library = nullptr;  // of a CUkernel
};

std::set<Function*>& Functions() {
  static auto* const functions = new std::set<Function*>;
  return *functions;
}
// The handles of unloaded code. One comes back with the next function of the same name.
std::vector<Function*>& FreeHandles() {
  static auto* const handles = new std::vector<Function*>;
  return *handles;
}
std::set<Module*>& Modules() {
  static auto* const modules = new std::set<Module*>;
  return *modules;
}
std::set<Library*>& Libraries() {
  static auto* const libraries = new std::set<Library*>;
  return *libraries;
}

Function* FindFunction(const void* handle) {
  auto* function = static_cast<Function*>(const_cast<void*>(handle));
  return Functions().count(function) ? function : nullptr;
}

template <typename Match>
void EraseFunctions(Match match) {
  std::erase_if(Functions(), [&](Function* function) {
    if (!match(*function)) return false;
    FreeHandles().push_back(function);
    return true;
  });
}

template <typename Handle>
CUresult NewFunction(Handle* out, const char* name, Module* module, Library* library) {
  const Kernel* kernel = name == nullptr ? nullptr : FindKernel(name);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  for (Function* known : Functions()) {
    if (known->kernel == kernel && known->module == module && known->library == library) {
      *out = reinterpret_cast<Handle>(known);
      return CUDA_SUCCESS;
    }
  }
  const auto free = std::find_if(FreeHandles().begin(), FreeHandles().end(),
                                 [&](const Function* handle) { return handle->kernel == kernel; });
  Function* function = nullptr;
  if (free == FreeHandles().end()) {
    function = new Function{kernel, module, library};
  } else {
    function = *free;
    FreeHandles().erase(free);
    *function = {kernel, module, library};
  }
  Functions().insert(function);
  *out = reinterpret_cast<Handle>(function);
  return CUDA_SUCCESS;
}

CUresult Load(CUmodule* out, const void* image) {
  Lock lock;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult lost = AwaitContextAlone(lock, *context)) return lost;
  auto* module = new Module{context};
  Modules().insert(module);
  *out = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

void LoadInto(Lock& lock, Library& library, Context& context) {
  if (library.loaded_in.insert(context.id).second) AwaitContextAlone(lock, context);
}

CUresult GatherArguments(const Kernel& kernel, void** parameters, void** extra, Arguments* out) {
  const size_t count = kernel.parameter_sizes.size();
  out->resize(count == 0 ? 0 : OffsetOf(kernel, count - 1) + kernel.parameter_sizes[count - 1]);
  if (count == 0) return CUDA_SUCCESS;
  if (parameters != nullptr) {
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(out->data() + OffsetOf(kernel, i), parameters[i], kernel.parameter_sizes[i]);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* buffer = nullptr;
  size_t size = 0;
  for (void** item = extra; *item != CU_LAUNCH_PARAM_END; item += 2) {
    if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = item[1];
    if (*item == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<size_t*>(item[1]);
  }
  if (buffer == nullptr || size < out->size()) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(out->data(), buffer, out->size());
  return CUDA_SUCCESS;
}

CUresult Launch(CUfunction handle, CUstream stream_handle, size_t threads, void** parameters, void** extra) {
  Lock lock;
  const auto [stream, error] = ResolveStream(stream_handle);
  if (error) return error;
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (threads == 0) return CUDA_ERROR_INVALID_VALUE;
  if (function->library != nullptr && stream->capture == nullptr)
    LoadInto(lock, *function->library, *stream->context);
  Step step;
  if (const CUresult wrong = MakeKernelStep(*stream->context, handle, parameters, extra, &step)) return wrong;
  return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_KERNEL, {std::move(step)}});
}

template <typename Handle>
CUresult Enumerate(Handle* out, unsigned count, Module* module, Library* library) {
  for (unsigned i = 0; i < count && i < Kernels().size(); ++i) {
    NewFunction(&out[i], Kernels()[i].name, module, library);
  }
  return CUDA_SUCCESS;
}

CUresult ParameterInfo(const void* handle, size_t index, size_t* offset, size_t* size) {
  Lock lock;
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= function->kernel->parameter_sizes.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = OffsetOf(*function->kernel, index);
  if (size != nullptr) *size = function->kernel->parameter_sizes[index];
  return CUDA_SUCCESS;
}

int AttributeOf(CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return 32;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 90;
    default:
      return 0;
  }
}

}  // namespace

CUresult MakeKernelStep(Context& context, CUfunction handle, void** parameters, void** extra, Step* step) {
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Arguments arguments;
  if (const CUresult error = GatherArguments(*function->kernel, parameters, extra, &arguments)) return error;
  *step = KernelStep(context, *function->kernel, std::move(arguments));
  return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule* out, const char* file) { return Load(out, file); }
CUresult cuModuleLoadData(CUmodule* out, const void* image) { return Load(out, image); }
CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int, CUjit_option*, void**) {
  return Load(out, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) { return Load(out, image); }

CUresult cuModuleUnload(CUmodule handle) {
  Lock lock;
  auto* module = reinterpret_cast<Module*>(handle);
  if (Modules().count(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  AwaitContextAlone(lock, *module->context);
  EraseFunctions([&](const Function& function) { return function.module == module; });
  Modules().erase(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  Lock lock;
  return NewFunction(out, name, reinterpret_cast<Module*>(module), nullptr);
}
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule) {
  *count = static_cast<unsigned>(Kernels().size());
  return CUDA_SUCCESS;
}
CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned int count, CUmodule module) {
  Lock lock;
  return Enumerate(out, count, reinterpret_cast<Module*>(module), nullptr);
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*) { return CUDA_ERROR_NOT_FOUND; }

CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option*, void**, unsigned int,
                           CUlibraryOption*, void**, unsigned int) {
  Lock lock;
  if (out == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* library = new Library;
  Libraries().insert(library);
  *out = reinterpret_cast<CUlibrary>(library);
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary handle) {
  Lock lock;
  auto* library = reinterpret_cast<Library*>(handle);
  if (Libraries().erase(library) == 0) return CUDA_ERROR_INVALID_HANDLE;
  EraseFunctions([&](const Function& function) { return function.library == library; });
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
  Lock lock;
  return NewFunction(out, name, nullptr, reinterpret_cast<Library*>(library));
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary) {
  *count = static_cast<unsigned>(Kernels().size());
  return CUDA_SUCCESS;
}
CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned int count, CUlibrary library) {
  Lock lock;
  return Enumerate(out, count, nullptr, reinterpret_cast<Library*>(library));
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  Lock lock;
  Context* context = CurrentContext();
  auto* library = reinterpret_cast<Library*>(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (Libraries().count(library) == 0) return CUDA_ERROR_INVALID_HANDLE;
  LoadInto(lock, *library, *context);
  auto* module = new Module{context};
  Modules().insert(module);
  *out = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary, const char*) { return CUDA_ERROR_NOT_FOUND; }
CUresult cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary, const char*) { return CUDA_ERROR_NOT_FOUND; }

CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  Lock lock;
  const Function* function = FindFunction(kernel);
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LoadInto(lock, *function->library, *CurrentContext());
  *out = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel kernel) {
  Lock lock;
  const Function* function = FindFunction(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUlibrary>(function->library);
  return CUDA_SUCCESS;
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return standin::cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return ParameterInfo(kernel, index, offset, size);
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel, CUdevice) {
  *value = AttributeOf(attribute);
  return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  Lock lock;
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->kernel->name;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  Lock lock;
  const Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return ParameterInfo(function, index, offset, size);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = AttributeOf(attribute);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuFuncLoad(CUfunction) { return CUDA_SUCCESS; }
// The real driver takes no kernel's handle. (Here a kernel's function has the handle of the kernel.)
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  Lock lock;
  const Function* function = FindFunction(handle);
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (function == nullptr || function->library != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size, size_t) {
  *blocks = block_size > 0 ? 2048 / block_size : 0;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size, size_t shared, unsigned int) {
  return standin::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int,
                        CUstream stream, void** parameters, void** extra) {
  const size_t threads = size_t{grid_x} * grid_y * grid_z * block_x * block_y * block_z;
  return Launch(function, stream, threads, parameters, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** parameters, void** extra) {
  if (c == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      standin::cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                              c->blockDimZ, c->sharedMemBytes, c->hStream, parameters, extra);
  // The real driver records them when the kernel has begun, or says so itself.
  for (unsigned i = 0; result == CUDA_SUCCESS && i < c->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = c->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
      standin::cuEventRecord(attribute.value.launchCompletionEvent.event, c->hStream);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
      standin::cuEventRecord(attribute.value.programmaticEvent.event, c->hStream);
  }
  return result;
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void** parameters) {
  return standin::cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                                 parameters, nullptr);
}

}  // namespace standin
