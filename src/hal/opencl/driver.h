// The functions of one instance of an OpenCL runtime that the HAL needs. A queue is only ever used with the instance
// that made it.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
// Where these are defined (the shim), they are exported.
#pragma GCC visibility push(default)
#include <CL/cl.h>
#pragma GCC visibility pop

#include "preempt/hal.h"

namespace xsched::opencl {

// One line per function; null where the runtime has none.
#define XSCHED_OCL_DRIVER_FUNCTIONS(X) \
  X(clCreateUserEvent)                 \
  X(clSetUserEventStatus)              \
  X(clReleaseEvent)                    \
  X(clSetEventCallback)                \
  X(clGetEventInfo)                    \
  X(clEnqueueMarkerWithWaitList)       \
  X(clEnqueueBarrierWithWaitList)      \
  X(clFlush)                           \
  X(clFinish)                          \
  X(clRetainCommandQueue)              \
  X(clReleaseCommandQueue)             \
  X(clGetCommandQueueInfo)             \
  X(clGetDeviceInfo)                   \
  X(clGetDeviceIDs)                    \
  X(clGetPlatformInfo)

struct OclDriver {
#define XSCHED_MEMBER(name) decltype(&::name) name;
  XSCHED_OCL_DRIVER_FUNCTIONS(XSCHED_MEMBER)
#undef XSCHED_MEMBER
};

// Fills a driver by name; `find` is dlsym or the like.
template <typename Find>
OclDriver FindDriver(Find&& find) {
  OclDriver driver{};
#define XSCHED_FIND(name) driver.name = reinterpret_cast<decltype(driver.name)>(find(#name));
  XSCHED_OCL_DRIVER_FUNCTIONS(XSCHED_FIND)
#undef XSCHED_FIND
  return driver;
}

// As OclQueueCreate, for a queue of this driver, which must live on.
XSCHED_PRIVATE XResult OclQueueCreateOn(const OclDriver* driver, cl_command_queue queue, HwQueueHandle* hwq);

}  // namespace xsched::opencl
