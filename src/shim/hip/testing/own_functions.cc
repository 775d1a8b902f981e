// The stand-in's functions that are not in hal/hip/testing/fake_runtime.cc and do something. An instance
// knows the modules, functions and graphs that it has made.
#include <dlfcn.h>

#include <mutex>
#include <new>
#include <set>
#include <string>

#include "hal/hip/testing/fake_runtime.h"
#include "hip/functions.h"
#include "shim/hip/testing/offered_runtime.h"

using namespace xsched::hip;

#define OWN extern "C" __attribute__((visibility("hidden")))
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::mutex mutex;
std::set<const void*> known;

template <typename Handle>
hipError_t New(Handle* handle) {
  if (handle == nullptr) return hipErrorInvalidValue;
  *handle = reinterpret_cast<Handle>(new char);
  std::lock_guard lock(mutex);
  known.insert(*handle);
  return hipSuccess;
}

bool Knows(const void* handle) {
  std::lock_guard lock(mutex);
  return known.count(handle) != 0;
}

// Null: of the calls of a test that has no handles.
hipError_t Check(const void* handle) {
  return handle == nullptr || Knows(handle) ? hipSuccess : hipErrorInvalidHandle;
}

template <typename Handle>
hipError_t NewOf(const void* whole, Handle* part) {
  return Check(whole) == hipSuccess ? New(part) : hipErrorInvalidHandle;
}

hipError_t LaunchOf(const void* what, hipStream_t stream) {
  return Check(what) == hipSuccess ? FakeLaunch(stream) : hipErrorInvalidDeviceFunction;
}

}  // namespace

EXPORT void FakeRegisterVariable(const void* variable) {
  std::lock_guard lock(mutex);
  known.insert(variable);
}

OWN hipError_t Own_hipStreamSynchronize(hipStream_t stream);
OWN hipError_t Own_hipDeviceSynchronize() { return Own_hipStreamSynchronize(nullptr); }

// As AMD's, in this library alone.
OWN hipError_t Own_hipGetProcAddress(const char* symbol, void** pfn, int, uint64_t flags,
                                     hipDriverProcAddressQueryResult*) {
  constexpr uint64_t kPerThread = 2;
  *pfn = FakeExported((flags & kPerThread) != 0 ? (std::string(symbol) + "_spt").c_str() : symbol);
  return *pfn == nullptr ? hipErrorNotFound : hipSuccess;
}

OWN hipError_t Own_hipModuleLoadData(hipModule_t* module, const void*) { return New(module); }
OWN hipError_t Own_hipModuleUnload(hipModule_t module) { return Check(module); }
OWN hipError_t Own_hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char*) {
  return NewOf(module, function);
}
OWN hipError_t Own_hipFuncGetAttribute(int*, hipFunction_attribute, hipFunction_t function) {
  return Check(function);
}
OWN hipError_t Own_hipModuleLaunchKernel(hipFunction_t f, unsigned, unsigned, unsigned, unsigned, unsigned,
                                         unsigned, unsigned, hipStream_t stream, void**, void**) {
  return LaunchOf(f, stream);
}
OWN hipError_t Own_hipMemcpyToSymbol(const void* symbol, const void*, size_t, size_t, hipMemcpyKind) {
  return LaunchOf(symbol, nullptr);
}

// A library has two kernels.
OWN hipError_t Own_hipLibraryLoadData(hipLibrary_t* library, const void*, hipJitOption*, void**, unsigned,
                                      hipLibraryOption*, void**, unsigned) {
  return New(library);
}
OWN hipError_t Own_hipLibraryGetKernel(hipKernel_t* kernel, hipLibrary_t library, const char*) {
  return NewOf(library, kernel);
}
OWN hipError_t Own_hipLibraryGetKernelCount(unsigned* count, hipLibrary_t library) {
  if (count != nullptr) *count = 2;
  return Check(library);
}
OWN hipError_t Own_hipLibraryEnumerateKernels(hipKernel_t* kernels, unsigned wanted, hipLibrary_t library) {
  for (unsigned i = 0; i < wanted && i < 2; ++i) {
    if (hipError_t error = NewOf(library, &kernels[i]); error != hipSuccess) return error;
  }
  return Check(library);
}
// As since ROCm 7.2, of a kernel's handle as well.
OWN hipError_t Own_hipLaunchKernel(const void* function_address, dim3, dim3, void**, size_t,
                                   hipStream_t stream) {
  return LaunchOf(function_address, stream);
}

// More than there is.
OWN hipError_t Own_hipMemsetD8Async(hipDeviceptr_t, unsigned char, size_t count, hipStream_t stream) {
  if (count == SIZE_MAX) throw std::bad_alloc();
  return FakeLaunch(stream);
}

OWN hipError_t Own_hipGraphCreate(hipGraph_t* graph, unsigned) { return New(graph); }
OWN hipError_t Own_hipGraphAddEmptyNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t*,
                                        size_t) {
  return NewOf(graph, node);
}
// A graph has a node that was captured.
OWN hipError_t Own_hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  if (count == nullptr) return hipErrorInvalidValue;
  if (nodes != nullptr) {
    if (hipError_t error = NewOf(graph, &nodes[0]); error != hipSuccess) return error;
  }
  *count = 1;
  return Check(graph);
}
OWN hipError_t Own_hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t* from, hipGraphNode_t* to,
                                    size_t* count) {
  const hipError_t error = Own_hipGraphGetNodes(graph, from, count);
  return error == hipSuccess ? Own_hipGraphGetNodes(graph, to, count) : error;
}
OWN hipError_t Own_hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType*) { return Check(node); }
OWN hipError_t Own_hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph, unsigned long long) {
  return NewOf(graph, exec);
}
OWN hipError_t Own_hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) { return LaunchOf(exec, stream); }
OWN hipError_t Own_hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode) {
  return stream == nullptr ? hipErrorStreamCaptureUnsupported : FakeCapture(stream, 1);
}
OWN hipError_t Own_hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status);
// As AMD's: of a stream that does not capture, it says only that.
OWN hipError_t Own_hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus* status,
                                              unsigned long long*, hipGraph_t* graph,
                                              const hipGraphNode_t** dependencies, size_t* count) {
  const hipError_t error = Own_hipStreamIsCapturing(stream, status);
  if (error != hipSuccess || *status != hipStreamCaptureStatusActive) return error;
  static hipGraphNode_t last = nullptr;
  if (hipError_t no_node = New(&last); no_node != hipSuccess) return no_node;
  if (dependencies != nullptr) *dependencies = &last;
  if (count != nullptr) *count = 1;
  return graph == nullptr ? hipSuccess : New(graph);
}
OWN hipError_t Own_hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  if (hipError_t error = FakeCapture(stream, 0); error != hipSuccess) return error;
  return graph == nullptr ? hipSuccess : New(graph);
}

// A device has a pool, with 60 MiB in it, until it is reset. As in AMD's, whoever asks about a pool that has
// ended reads what is in the freed memory.
namespace {
char pools[16];
int resets = 0;
}  // namespace

OWN hipError_t Own_hipDeviceReset() { return ++resets < 16 ? hipSuccess : hipErrorUnknown; }
EXPORT hipError_t hipDeviceGetMemPool(void** pool, int) {
  *pool = &pools[resets];
  return hipSuccess;
}
EXPORT hipError_t hipMemPoolGetAttribute(const void* pool, unsigned, void* value) {
  const bool has_ended = pool != &pools[resets];
  *static_cast<uint64_t*>(value) = has_ended ? uint64_t{1} << 50 : uint64_t{60} << 20;
  return hipSuccess;
}
