#include "context.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "capture.h"
#include "driver.h"
#include "entry.h"
#include "rm.h"
#include "rules.h"
#include "standin.h"
#include "stream.h"

namespace standin {
namespace {

std::atomic<bool> initialized{false};
std::atomic<bool> forked{false};

struct State {
  std::vector<Device*> devices;     // those that CUDA_VISIBLE_DEVICES shows, in its order
  std::vector<Context*> primaries;  // by place in `devices`
  std::set<Context*> contexts;
  std::vector<Context*> retired;
  uint64_t contexts_made = 0;
};
State& TheState() {
  static State* const state = new State;
  return *state;
}

thread_local std::vector<Context*> stack;

int Setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// A green context is current to one thread at a time. False: it is current to another one.
bool Enter(Context& context) {
  if (context.primary_of_green == nullptr) return true;
  if (context.times_current != 0 && context.current_on != std::this_thread::get_id()) return false;
  context.current_on = std::this_thread::get_id();
  ++context.times_current;
  return true;
}
void Leave(Context& context) {
  if (context.times_current != 0) --context.times_current;
}

Context*& PrimaryOf(CUdevice device) { return TheState().primaries[device]; }

CUresult ResetPrimary(CUdevice device) {
  uint64_t id = 0;
  {
    Lock lock;
    if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    Context* const primary = PrimaryOf(device);
    if (primary == nullptr) return CUDA_SUCCESS;
    AwaitContext(lock, *primary);
    if (primary->destroyed) return CUDA_SUCCESS;  // another thread was faster
    PrimaryOf(device) = nullptr;
    Retire(*primary);
    id = primary->id;
  }
  rm::ContextDestroyed(id);
  return CUDA_SUCCESS;
}

// Creating a context waits for the work of the process's other contexts, as the real driver does.
CUresult MakeContext(CUcontext* out, unsigned flags, CUdevice device) {
  uint64_t id = 0;
  {
    Lock lock;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    for (Context* other : std::set<Context*>(TheState().contexts)) {
      if (other->device == DeviceAt(device)) AwaitContext(lock, *other);
    }
    Context* context = NewContext(*DeviceAt(device), false);
    context->flags = flags;
    stack.push_back(context);
    *out = HandleOf(context);
    id = context->id;
  }
  rm::ContextCreated(id, device);
  return CUDA_SUCCESS;
}

}  // namespace

bool IsInitialized() { return initialized.load(std::memory_order_acquire); }
bool IsForkedChild() { return forked.load(std::memory_order_relaxed); }
int DriverVersion() {
  static const int version = Setting("STANDIN_CUDA_VERSION", CUDA_VERSION);
  return version;
}

Context* NewContext(Device& device, bool primary) {
  auto* context = new Context{.device = &device, .id = ++TheState().contexts_made, .primary = primary};
  context->legacy = std::make_shared<Stream>(*context, Stream::Kind::kLegacy, 0, 0);
  TheState().contexts.insert(context);
  return context;
}

void Retire(Context& context) {
  context.destroyed = true;
  context.streams.clear();
  context.per_thread.clear();
  TheState().contexts.erase(&context);
  TheState().retired.push_back(&context);
}

CUresult LossOfCurrentContext() {
  if (stack.empty()) return CUDA_SUCCESS;
  Lock lock;
  return stack.back()->lost;
}

Device* DeviceAt(int ordinal) {
  return ordinal >= 0 && ordinal < DeviceCount() ? TheState().devices[ordinal] : nullptr;
}
int DeviceCount() { return static_cast<int>(TheState().devices.size()); }
Context* CurrentContext() { return stack.empty() || stack.back()->destroyed ? nullptr : stack.back(); }
Context* FindContext(CUcontext handle) {
  auto* context = reinterpret_cast<Context*>(handle);
  return TheState().contexts.count(context) ? context : nullptr;
}

CUresult AwaitCommand(Lock& lock, const CommandPtr& command) {
  CommandsDone().wait(lock, [&] { return command->done; });
  return command->context->lost;
}

CUresult AwaitContext(Lock& lock, Context& context) {
  for (const CommandPtr& command : context.device->LastCommandsOf(context)) AwaitCommand(lock, command);
  return context.lost;
}

CUresult AwaitContextAlone(Lock& lock, Context& context) {
  static const bool alone = Obeys("waiting_free_blocks");
  if (!alone || context.device->LastCommandsOf(context).empty()) return AwaitContext(lock, context);
  const Blocked blocked(context.waiting_for_all);
  return AwaitContext(lock, context);
}

void BlockedCalls::AwaitThose(Lock& lock) const {
  if (inside == 0) return;
  const uint64_t all_have_left = left + inside;
  CommandsDone().wait(lock, [&] { return inside == 0 || left >= all_have_left; });
}

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock;
  if (initialized) return CUDA_SUCCESS;
  ReadFaultsFromEnvironment();
  if (const char* us = std::getenv("STANDIN_CUDA_KERNEL_US")) standin_set_kernel_time(std::atoll(us) * 1000);
  standin_set_immediate(Setting("STANDIN_CUDA_IMMEDIATE", 0));
  for (int ordinal : VisibleDevices(Setting("STANDIN_CUDA_DEVICES", 1))) {
    TheState().devices.push_back(new Device(ordinal));
    TheState().primaries.push_back(nullptr);
  }
  if (TheState().devices.empty()) return CUDA_ERROR_NO_DEVICE;
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  initialized.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  uint64_t created = 0;
  {
    Lock lock;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    Context*& primary = PrimaryOf(device);
    if (primary == nullptr) {
      primary = NewContext(*DeviceAt(device), true);
      created = primary->id;
    }
    ++primary->retained;
    *out = HandleOf(primary);
  }
  if (created != 0) rm::ContextCreated(created, device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  {
    Lock lock;
    if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    Context* primary = PrimaryOf(device);
    if (primary == nullptr || primary->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary->retained > 0) return CUDA_SUCCESS;
  }
  return ResetPrimary(device);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return standin::cuDevicePrimaryCtxRelease_v2(device); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return ResetPrimary(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return ResetPrimary(device); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (Context* primary = PrimaryOf(device)) primary->flags = flags;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return standin::cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  Lock lock;
  if (DeviceAt(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const Context* primary = PrimaryOf(device);
  *flags = primary ? primary->flags : 0;
  *active = primary != nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return MakeContext(out, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int, unsigned int flags, CUdevice device) {
  return MakeContext(out, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned int flags, CUdevice device) {
  return MakeContext(out, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  uint64_t id = 0;
  {
    Lock lock;
    Context* context = FindContext(handle);
    if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    AwaitContext(lock, *context);
    if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    Retire(*context);
    id = context->id;
  }
  rm::ContextDestroyed(id);
  return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* out, unsigned int flags) {
  Lock lock;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  ++context->attached;
  *out = HandleOf(context);
  return CUDA_SUCCESS;
}
// A primary context stays, as with the real driver.
CUresult cuCtxDetach(CUcontext handle) {
  {
    Lock lock;
    Context* context = FindContext(handle);
    if (context == nullptr || context != CurrentContext()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->primary) return CUDA_SUCCESS;
    if (context->attached != 0) {
      --context->attached;
      return CUDA_SUCCESS;
    }
  }
  return standin::cuCtxDestroy_v2(handle);
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  Lock lock;
  Context* context = FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!Enter(*context)) return CUDA_ERROR_CONTEXT_ALREADY_IN_USE;
  stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = HandleOf(stack.back());
  Lock lock;
  Leave(*stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  Lock lock;
  if (handle == nullptr) {
    if (!stack.empty()) Leave(*stack.back()), stack.pop_back();
    return CUDA_SUCCESS;
  }
  Context* context = FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!Enter(*context)) return CUDA_ERROR_CONTEXT_ALREADY_IN_USE;
  if (!stack.empty()) Leave(*stack.back());
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = stack.empty() ? nullptr : HandleOf(stack.back());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
  Lock lock;
  Context* context = handle == nullptr ? CurrentContext() : FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  for (int i = 0; i < DeviceCount(); ++i) {
    if (DeviceAt(i) == context->device) *out = i;
  }
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* out) { return standin::cuCtxGetDevice_v2(out, nullptr); }

CUresult cuCtxGetFlags(unsigned int* flags) {
  Lock lock;
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *flags = CurrentContext()->flags;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetFlags(unsigned int flags) {
  Lock lock;
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CurrentContext()->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  Lock lock;
  Context* context = handle == nullptr ? CurrentContext() : FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  Lock lock;
  Context* context = handle == nullptr ? CurrentContext() : FindContext(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return AwaitContext(lock, *context);
}
CUresult cuCtxSynchronize() { return standin::cuCtxSynchronize_v2(nullptr); }

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit, size_t) { return CUDA_SUCCESS; }
CUresult cuCtxGetLimit(size_t* value, CUlimit) {
  *value = 1024;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }

}  // namespace standin

void standin_lose_context(void* handle, int error) {
  standin::Lock lock;
  standin::Context* context = standin::FindContext(static_cast<CUcontext>(handle));
  if (context == nullptr) return;
  context->lost = static_cast<CUresult>(error);
  context->device->Wake();
}

void standin_lose_contexts(int ordinal, int error) {
  standin::Lock lock;
  standin::Device* device = standin::DeviceAt(ordinal);
  for (standin::Context* context : standin::TheState().contexts) {
    if (context->device == device) context->lost = static_cast<CUresult>(error);
  }
  if (device != nullptr) device->Wake();
}
