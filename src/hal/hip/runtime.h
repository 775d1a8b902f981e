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

#include "base/driver_function.h"
#include "hal/contract.h"
#include "hal/hip/hip_abi.h"

namespace xsched::hip {

inline constexpr int kMaxRuntimes = 16;

// The functions of one instance that the HAL calls; null: the instance has no such function. The names are
// those of the exported functions.
struct Functions {
  DriverFunction<hipError_t (*)(int* device)> hipGetDevice;
  DriverFunction<hipError_t (*)(int device)> hipSetDevice;
  DriverFunction<hipError_t (*)(int* count)> hipGetDeviceCount;
  DriverFunction<hipError_t (*)(int* version)> hipRuntimeGetVersion;
  DriverFunction<hipError_t (*)(char* text, int size, int device)> hipDeviceGetPCIBusId;
  DriverFunction<hipError_t (*)(char* text, int size, hipDevice_t device)> hipDeviceGetName;
  DriverFunction<hipError_t (*)()> hipGetLastError;
  DriverFunction<hipError_t (*)()> hipPeekAtLastError;
  DriverFunction<int (*)(hipStream_t stream)> hipGetStreamDeviceId;
  DriverFunction<hipError_t (*)(hipStream_t stream, unsigned* flags)> hipStreamGetFlags;
  DriverFunction<hipError_t (*)(hipStream_t stream)> hipStreamQuery;
  DriverFunction<hipError_t (*)(hipStream_t stream)> hipStreamSynchronize;
  DriverFunction<hipError_t (*)(hipStream_t stream, hipStreamCaptureStatus* status)> hipStreamIsCapturing;
  DriverFunction<hipError_t (*)(hipStreamCaptureMode* mode)> hipThreadExchangeStreamCaptureMode;
  DriverFunction<hipError_t (*)(hipEvent_t* event, unsigned flags)> hipEventCreateWithFlags;
  DriverFunction<hipError_t (*)(hipEvent_t event)> hipEventDestroy;
  DriverFunction<hipError_t (*)(hipEvent_t event, hipStream_t stream)> hipEventRecord;
  DriverFunction<hipError_t (*)(hipEvent_t event)> hipEventQuery;
  DriverFunction<hipError_t (*)(void** pool, int device)> hipDeviceGetMemPool;
  DriverFunction<hipError_t (*)(void* pool, unsigned attribute, void* value)> hipMemPoolGetAttribute;
  DriverFunction<hipError_t (*)(void* pool, size_t keep)> hipMemPoolTrimTo;
  DriverFunction<hipError_t (*)(int device, unsigned attribute, void* value)> hipDeviceGetGraphMemAttribute;
  DriverFunction<hipError_t (*)(int device)> hipDeviceGraphMemTrim;
  DriverFunction<hipError_t (*)(void** memory, size_t size)> hipMalloc;
  DriverFunction<hipError_t (*)(hipDeviceptr_t* base, size_t* size, hipDeviceptr_t address)>
      hipMemGetAddressRange;
};

// Returns the function that a dispatch table had for `name` before the shim put its own there. Null: the
// table has none of that name. `data` belongs to the code that registered the table.
using OriginalFunction = void* (*)(const void* data, const char* name);

class Runtime {
 public:
  constexpr Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // From 0 to kMaxRuntimes - 1: the shim has tables with this index.
  XSCHED_PRIVATE int index() const;
  const Functions& next() const { return functions_; }
  // The real function of this instance, and not our wrapper. Null: it has none of that name.
  void* Find(const char* name) const;
  // The path of its file, from the dynamic linker.
  const char* path() const { return path_; }
  // The address at which the library is loaded. It identifies the instance.
  const void* base() const { return base_.load(std::memory_order_acquire); }
  // True if its calls reach the shim through its dispatch table, for all callers.
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

// The instance for a caller that is linked to none: the one that XSCHED_HIP_LIB names (it is opened only if
// no instance is loaded), otherwise the first that was loaded.
Runtime* DefaultRuntime();

// The instance that made `stream`, a real handle (not 0, 1 or 2). With several loaded, each is asked whether
// it knows the stream, `guess` (may be null) first: for a stream that is none of its own a runtime only says
// so.
Runtime* RuntimeOfStream(hipStream_t stream, Runtime* guess);

// An instance announces itself with its dispatch table, before any of its functions has run. `function` is
// any of the table's original functions. Takes no lock of ours and calls nothing of the runtime: this may run
// inside the dynamic linker, which a thread may enter again. Null: there are too many instances, and this one
// runs unscheduled.
XSCHED_PRIVATE Runtime* RegisterDispatchTable(const void* function, OriginalFunction original,
                                              const void* data);

// Those registered so far, by index; `RuntimeCount()` first looks for instances loaded since.
XSCHED_PRIVATE int RuntimeCount();
Runtime* RuntimeByIndex(int index);

// For tests, if it is not null: called when an entry for an instance has been taken, and is not filled yet.
extern void (*while_an_instance_is_added)();

}  // namespace xsched::hip
