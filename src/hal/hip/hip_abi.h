// The binary interface of AMD's HIP runtime (libamdhip64), as far as XSched needs it: handles, the error
// codes and flags that it looks at, and the structures that are passed by value or read. AMD's headers are
// not needed, and must not be included beside this one.
//
// What is said here holds for ROCm 5.2 to 7.2. Handles of which only addresses are passed on are `void*`.
#pragma once

#include <cstddef>
#include <cstdint>

// Names that mangled symbols have in them: hipExtModuleLaunchKernel exists as C and as C++.
struct ihipStream_t;
struct ihipEvent_t;
struct ihipModuleSymbol_t;
struct ihipModule_t;
struct ihipCtx_t;
using hipStream_t = ihipStream_t*;
using hipEvent_t = ihipEvent_t*;
using hipFunction_t = ihipModuleSymbol_t*;
using hipModule_t = ihipModule_t*;
using hipCtx_t = ihipCtx_t*;
using hipGraph_t = struct ihipGraph*;
using hipGraphExec_t = struct hipGraphExec*;
using hipDeviceptr_t = void*;
using hipDevice_t = int;

enum hipError_t : unsigned {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorDeinitialized = 4,
  hipErrorInvalidDeviceFunction = 98,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidContext = 201,
  hipErrorInvalidHandle = 400,  // and hipErrorInvalidResourceHandle
  hipErrorNotFound = 500,
  hipErrorNotReady = 600,
  hipErrorContextIsDestroyed = 709,  // before ROCm 7 also: a stream of another runtime instance
  hipErrorLaunchFailure = 719,
  hipErrorNotSupported = 801,
  hipErrorStreamCaptureUnsupported = 900,
  hipErrorStreamCaptureInvalidated = 901,
  hipErrorStreamCaptureUnjoined = 904,
  hipErrorStreamCaptureImplicit = 906,
  hipErrorCapturedEvent = 907,
  hipErrorStreamCaptureWrongThread = 908,
  hipErrorUnknown = 999,
};

// Handles that mean no stream of their own: the current device's default stream (0, and 1 since ROCm 6), and
// the one of the current device and calling thread.
inline const hipStream_t kHipStreamNull = nullptr;
inline const hipStream_t kHipStreamLegacy = reinterpret_cast<hipStream_t>(uintptr_t{1});
inline const hipStream_t kHipStreamPerThread = reinterpret_cast<hipStream_t>(uintptr_t{2});

inline constexpr unsigned kHipStreamNonBlocking = 0x01;
inline constexpr unsigned kHipEventBlockingSync = 0x1;
inline constexpr unsigned kHipEventDisableTiming = 0x2;
inline constexpr unsigned kHipEventInterprocess = 0x4;

enum hipStreamCaptureMode : unsigned {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeThreadLocal = 1,
  hipStreamCaptureModeRelaxed = 2,
};

enum hipStreamCaptureStatus : unsigned {
  hipStreamCaptureStatusNone = 0,
  hipStreamCaptureStatusActive = 1,
  hipStreamCaptureStatusInvalidated = 2,
};

using hipStreamCallback_t = void (*)(hipStream_t stream, hipError_t status, void* data);
using hipHostFn_t = void (*)(void* data);

// ---- passed by value ----

struct dim3 {
  uint32_t x, y, z;
};
static_assert(sizeof(dim3) == 12);

struct hipExtent {
  size_t width, height, depth;
};
static_assert(sizeof(hipExtent) == 24);

struct hipPos {
  size_t x, y, z;
};

struct hipPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
static_assert(sizeof(hipPitchedPtr) == 32);

struct hipIpcMemHandle_t {
  char reserved[64];
};
struct hipIpcEventHandle_t {
  char reserved[64];
};

struct hipMemLocation {
  int type;
  int id;
};
static_assert(sizeof(hipMemLocation) == 8);

// ---- read: what memory is asked for ----

struct hipChannelFormatDesc {  // bits of each channel
  int x, y, z, w;
  int f;
};
static_assert(sizeof(hipChannelFormatDesc) == 20);

struct HIP_ARRAY_DESCRIPTOR {
  size_t Width, Height;
  unsigned Format;
  unsigned NumChannels;
};
static_assert(sizeof(HIP_ARRAY_DESCRIPTOR) == 24);

struct HIP_ARRAY3D_DESCRIPTOR {
  size_t Width, Height, Depth;
  unsigned Format;
  unsigned NumChannels;
  unsigned Flags;
};
static_assert(sizeof(HIP_ARRAY3D_DESCRIPTOR) == 40);

inline constexpr int kHipMemLocationTypeDevice = 1;

struct hipMemAllocationProp {  // since ROCm 5.4; before, the location was at offset 4
  unsigned type;
  unsigned requestedHandleType;
  hipMemLocation location;
};

struct hipMemPoolProps {
  unsigned allocType;
  unsigned handleTypes;
  hipMemLocation location;
  void* win32SecurityAttributes;
  unsigned char reserved[64];
};
static_assert(sizeof(hipMemPoolProps) == 88);

struct hipMemAllocNodeParams {
  hipMemPoolProps poolProps;
  const void* accessDescs;
  size_t accessDescCount;
  size_t bytesize;
  void* dptr;
};
static_assert(sizeof(hipMemAllocNodeParams) == 120);

// hipMemPoolAttr, hipGraphMemAttributeType
inline constexpr unsigned kHipMemPoolReserved = 5;
inline constexpr unsigned kHipMemPoolUsed = 7;
inline constexpr unsigned kHipGraphMemUsed = 0;
inline constexpr unsigned kHipGraphMemReserved = 2;

// ---- read: each names the stream that it is for ----

struct hipLaunchParams {  // hipLaunchCooperativeKernelMultiDevice, hipExtLaunchMultiKernelMultiDevice
  void* func;
  dim3 gridDim;
  dim3 blockDim;
  void** args;
  size_t sharedMem;
  hipStream_t stream;
};
static_assert(sizeof(hipLaunchParams) == 56);

struct hipFunctionLaunchParams {  // hipModuleLaunchCooperativeKernelMultiDevice
  hipFunction_t function;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  hipStream_t hStream;
  void** kernelParams;
};
static_assert(sizeof(hipFunctionLaunchParams) == 56);

struct hipStreamBatchMemOpParams {  // hipStreamBatchMemOp
  unsigned operation;
  uint64_t rest[5];
};
static_assert(sizeof(hipStreamBatchMemOpParams) == 48);

inline constexpr unsigned kHipStreamMemOpWriteValue32 = 2;
inline constexpr unsigned kHipStreamMemOpWriteValue64 = 5;

struct hipGraphInstantiateParams {  // hipGraphInstantiateWithParams
  void* errNode_out;
  unsigned long long flags;
  unsigned result_out;
  hipStream_t uploadStream;
};
static_assert(sizeof(hipGraphInstantiateParams) == 32);

inline constexpr unsigned long long kHipGraphInstantiateUpload = 2;

struct hipLaunchConfig_t {  // hipLaunchKernelExC
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  hipStream_t stream;
  void* attrs;
  unsigned numAttrs;
};
static_assert(sizeof(hipLaunchConfig_t) == 56);

struct HIP_LAUNCH_CONFIG {  // hipDrvLaunchKernelEx
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  hipStream_t hStream;
  void* attrs;
  unsigned numAttrs;
};
static_assert(sizeof(HIP_LAUNCH_CONFIG) == 56);
