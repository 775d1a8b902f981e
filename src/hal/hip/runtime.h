// The instances of AMD's HIP runtime (libamdhip64) that this process has loaded. There may be several:
// PyTorch brings its own beside the one in /opt/rocm. Streams, events, modules and graphs belong to the
// instance that made them, so every call has to reach that one.
//
// No instance is ever opened here if one is loaded. Instances are found by walking the loaded libraries, or
// they announce themselves with their dispatch table; a registered instance stays loaded, and its Runtime
// stays.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hal/contract.h"
#include "hal/hip/hip_abi.h"

namespace xsched::hip {

inline constexpr int kMaxRuntimes = 16;

// What the HAL itself calls, of one instance; null: it does not have it. Names are those of the exported
// functions.
struct Functions {
  hipError_t (*hipGetDevice)(int* device);
  hipError_t (*hipSetDevice)(int device);
  hipError_t (*hipGetDeviceCount)(int* count);
  hipError_t (*hipDeviceGetPCIBusId)(char* text, int size, int device);
  hipError_t (*hipDeviceGetName)(char* text, int size, hipDevice_t device);
  hipError_t (*hipGetLastError)();
  hipError_t (*hipPeekAtLastError)();
  int (*hipGetStreamDeviceId)(hipStream_t stream);
  hipError_t (*hipStreamGetFlags)(hipStream_t stream, unsigned* flags);
  hipError_t (*hipStreamQuery)(hipStream_t stream);
  hipError_t (*hipStreamSynchronize)(hipStream_t stream);
  hipError_t (*hipStreamIsCapturing)(hipStream_t stream, hipStreamCaptureStatus* status);
  hipError_t (*hipThreadExchangeStreamCaptureMode)(hipStreamCaptureMode* mode);
  hipError_t (*hipEventCreateWithFlags)(hipEvent_t* event, unsigned flags);
  hipError_t (*hipEventDestroy)(hipEvent_t event);
  hipError_t (*hipEventRecord)(hipEvent_t event, hipStream_t stream);
  hipError_t (*hipEventQuery)(hipEvent_t event);
};

// The function that a dispatch table had for `name` before the shim put its own there; null: the table has
// none of that name. `data` is the registrant's.
using OriginalFunction = void* (*)(const void* data, const char* name);

class Runtime {
 public:
  constexpr Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Counted from 0, below kMaxRuntimes: for tables of the shim's own.
  XSCHED_PRIVATE int index() const;
  const Functions& next() const { return functions_; }
  // The real function of this instance, past every wrapper of ours; null: it has none of that name.
  XSCHED_PRIVATE void* Find(const char* name) const;
  // Its file, as the dynamic linker knows it.
  const char* path() const { return path_; }
  // Where the library is loaded: what tells instances apart.
  const void* base() const { return base_.load(std::memory_order_acquire); }
  // Its calls come to the shim through its dispatch table, whoever makes them and however it is linked.
  bool has_table() const { return original_.load(std::memory_order_acquire) != nullptr; }

 private:
  friend class RuntimeTable;

  std::atomic<const void*> base_{nullptr};  // null: no instance's; set first, once
  std::atomic<bool> ready_{false};          // what follows has been written, but for what is atomic
  Functions functions_{};
  char path_[512] = "";
  mutable std::atomic<void*> library_{nullptr};  // dlopen's handle; null: not opened so far
  std::atomic<OriginalFunction> original_{nullptr};
  std::atomic<const void*> original_data_{nullptr};  // written before it
};

// All of these return null when there is no such instance. Runtimes are never freed.

// The instance that the code at `address` (a return address) reaches by its own linking, as the dynamic
// linker has bound it: to the one in the global scope, if that was there before it; else to the one that its
// library was linked to, itself or by what it depends on; code that is linked to none, to the one in the
// global scope, or DefaultRuntime. Walks loaded libraries (some 10 µs): remember the answer per call site.
XSCHED_PRIVATE Runtime* RuntimeOfCaller(const void* address);

// The instance whose own code is at `address`, for functions that were looked up in it.
XSCHED_PRIVATE Runtime* RuntimeAt(const void* address);

// For who is linked to none: the one of XSCHED_HIP_LIB, opened if no instance at all is loaded; else the
// first that was loaded.
XSCHED_PRIVATE Runtime* DefaultRuntime();

// The instance that made `stream`, a real handle (not 0, 1 or 2). With several loaded, each is asked whether
// it knows the stream, `guess` (may be null) first: for a stream that is none of its own a runtime only says
// so.
XSCHED_PRIVATE Runtime* RuntimeOfStream(hipStream_t stream, Runtime* guess);

// An instance announces itself with its dispatch table, before any of its functions has run. `function` is
// any of the table's original functions. Takes no lock and calls nothing of the runtime: this may run inside
// the dynamic linker. Null: there are too many instances, and this one runs unscheduled.
XSCHED_PRIVATE Runtime* RegisterDispatchTable(const void* function, OriginalFunction original,
                                              const void* data);

// Those registered so far, by index; `RuntimeCount()` first looks for instances loaded since.
XSCHED_PRIVATE int RuntimeCount();
XSCHED_PRIVATE Runtime* RuntimeByIndex(int index);

}  // namespace xsched::hip
