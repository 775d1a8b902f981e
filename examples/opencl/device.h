/* OpenCL's part of the common examples. */
#ifndef XSCHED_EXAMPLES_OPENCL_DEVICE_H_
#define XSCHED_EXAMPLES_OPENCL_DEVICE_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <xsched/opencl/hal.h>

#define CL_CHECK(call)                                       \
  do {                                                       \
    const cl_int error = (call);                             \
    if (error != CL_SUCCESS) {                               \
      fprintf(stderr, "%s: OpenCL %d\n", #call, (int)error); \
      exit(1);                                               \
    }                                                        \
  } while (0)

static const char kSource[] =
    "__kernel void work(__global float* data) {\n"
    "  float x = data[get_global_id(0)];\n"
    "  for (int i = 0; i < 2000; ++i) x = x * 0.999f + 0.001f;\n"
    "  data[get_global_id(0)] = x;\n"
    "}\n";

enum { kItems = 1 << 12 };

typedef struct DeviceQueue {
  cl_command_queue queue;
  cl_kernel kernel;
  cl_mem memory;
} DeviceQueue;

static cl_device_id device;
static cl_context context;
static cl_program program;

static inline void UseDevice(void) {}

static inline void OpenDevice(void) {
  const char* source = kSource;
  cl_platform_id platform;
  cl_int result;
  CL_CHECK(clGetPlatformIDs(1, &platform, NULL));
  CL_CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
  CL_CHECK(result);
  program = clCreateProgramWithSource(context, 1, &source, NULL, &result);
  CL_CHECK(result);
  CL_CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
}

static inline DeviceQueue OpenQueue(void) {
  DeviceQueue queue;
  cl_int result;
  queue.queue = clCreateCommandQueue(context, device, 0, &result);
  CL_CHECK(result);
  queue.memory = clCreateBuffer(context, CL_MEM_READ_WRITE, kItems * sizeof(float), NULL, &result);
  CL_CHECK(result);
  queue.kernel = clCreateKernel(program, "work", &result);
  CL_CHECK(result);
  CL_CHECK(clSetKernelArg(queue.kernel, 0, sizeof queue.memory, &queue.memory));
  return queue;
}

static inline void CloseQueue(const DeviceQueue* queue) {
  CL_CHECK(clReleaseCommandQueue(queue->queue));
  CL_CHECK(clReleaseKernel(queue->kernel));
  CL_CHECK(clReleaseMemObject(queue->memory));
}

static inline void Enqueue(const DeviceQueue* queue) {
  const size_t items = kItems;
  CL_CHECK(clEnqueueNDRangeKernel(queue->queue, queue->kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static inline void Finish(const DeviceQueue* queue) { CL_CHECK(clFinish(queue->queue)); }

static inline XResult CreateHwQueue(HwQueueHandle* hwq, const DeviceQueue* queue) {
  return OclQueueCreate(hwq, queue->queue);
}

#endif /* XSCHED_EXAMPLES_OPENCL_DEVICE_H_ */
