/* What the CUDA examples share: a device, and a kernel that keeps all of it busy for a given time. */
#ifndef XSCHED_EXAMPLES_CUDA_GPU_H_
#define XSCHED_EXAMPLES_CUDA_GPU_H_

#include "cu_check.h"

/* spin_us(int us), which the driver compiles for the device that is there. */
static const char kSpin[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry spin_us(.param .u32 us)\n"
    "{\n"
    "  .reg .pred %p<2>;\n"
    "  .reg .b32 %r<2>;\n"
    "  .reg .b64 %rd<5>;\n"
    "  ld.param.u32 %r1, [us];\n"
    "  mul.wide.u32 %rd1, %r1, 1000;\n"
    "  mov.u64 %rd2, %globaltimer;\n"
    "again:\n"
    "  mov.u64 %rd3, %globaltimer;\n"
    "  sub.u64 %rd4, %rd3, %rd2;\n"
    "  setp.lt.u64 %p1, %rd4, %rd1;\n"
    "  @%p1 bra again;\n"
    "  ret;\n"
    "}\n";

typedef struct Gpu {
  CUcontext context;
  CUfunction spin;
  unsigned blocks; /* of 1024 threads, that fill it */
} Gpu;

static inline Gpu OpenGpu(void) {
  Gpu gpu;
  CUdevice device;
  CUmodule module;
  int processors, threads;
  CU_CHECK(cuInit(0));
  CU_CHECK(cuDeviceGet(&device, 0));
  CU_CHECK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  CU_CHECK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
  gpu.blocks = (unsigned)(processors * threads / 1024);
  CU_CHECK(cuDevicePrimaryCtxRetain(&gpu.context, device));
  CU_CHECK(cuCtxSetCurrent(gpu.context));
  CU_CHECK(cuModuleLoadData(&module, kSpin));
  CU_CHECK(cuModuleGetFunction(&gpu.spin, module, "spin_us"));
  return gpu;
}

static inline CUresult Spin(const Gpu* gpu, int us, CUstream stream) {
  void* arguments[] = {&us};
  return cuLaunchKernel(gpu->spin, gpu->blocks, 1, 1, 1024, 1, 1, 0, stream, arguments, NULL);
}

#endif /* XSCHED_EXAMPLES_CUDA_GPU_H_ */
