#include "shim/hip/call.h"

#include "base/fork_handler.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"

namespace xsched::hip {

constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// For each handle, the instance that made it.
constinit NoDestroy<PointerMap<Instance>> makers;

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] { makers->ResetAfterFork(); }};
  handler.Install();
}

}  // namespace

bool Call::GoesBy(Handle handle) {
  Instance* maker =
      handle.value == nullptr ? nullptr : makers->Find(reinterpret_cast<uint64_t>(handle.value));
  if (maker == nullptr) return false;
  if (maker != target_.instance) target_ = ByPointer(*maker);
  return true;
}

bool Call::GoesBy(Code code) {
  if (code.address == nullptr) return false;
  if (GoesBy(Handle(code.address))) return true;
  const Target target = ByCode(code.address);
  if (target.instance == &nowhere) return false;
  if (target.instance != target_.instance) target_ = ByPointer(*target.instance);
  return true;
}

void Call::Remember(const void* handle) const {
  if (handle == nullptr) return;
  InstallForkHandler();
  makers->Insert(reinterpret_cast<uint64_t>(handle), &instance());
}

void Call::MadeNodes(const hipGraphNode_t* nodes, const size_t* count) const {
  if (nodes == nullptr || count == nullptr) return;
  for (size_t i = 0; i < *count; ++i) Remember(nodes[i]);
}

void Call::MadeCapture(const hipStreamCaptureStatus* status, const hipGraph_t* graph,
                       const hipGraphNode_t* const* nodes, const size_t* count) const {
  if (status == nullptr || *status != hipStreamCaptureStatusActive) return;
  Made(graph);
  if (nodes != nullptr) MadeNodes(*nodes, count);
}

void Call::MadeKernels(const hipKernel_t* kernels, unsigned wanted, hipLibrary_t library) const {
  auto ask = next().hipLibraryGetKernelCount;
  if (ask == nullptr) ask = exported().hipLibraryGetKernelCount;
  unsigned count = 0;
  if (kernels == nullptr || ask == nullptr || ask(&count, library) != hipSuccess) return;
  for (unsigned i = 0; i < wanted && i < count; ++i) Remember(kernels[i]);
}

void Call::Ends(const void* handle) const {
  if (handle != nullptr) makers->Remove(reinterpret_cast<uint64_t>(handle));
}

}  // namespace xsched::hip
