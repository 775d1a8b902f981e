#include "shim/hip/call.h"

#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "shim/common/fork.h"

namespace xsched::hip {

constinit thread_local const void* outermost_call __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// The instance that made a handle.
constinit NoDestroy<PointerMap<Instance>> makers;

void InstallForkHandler() {
  static constinit shim::ForkHandler handler = {[] { makers->ResetAfterFork(); }};
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
  const Target target = ByLinking(code.address);
  if (target.instance == &nowhere) return false;
  if (target.instance != target_.instance) target_ = ByPointer(*target.instance);
  return true;
}

void Call::Remember(const void* handle) const {
  if (handle == nullptr) return;
  InstallForkHandler();
  makers->Insert(reinterpret_cast<uint64_t>(handle), &instance());
}

void Call::Ends(const void* handle) const {
  if (handle != nullptr) makers->Remove(reinterpret_cast<uint64_t>(handle));
}

}  // namespace xsched::hip
