// OpenCL's functions that a program calls, from the loader of the system that it runs on. The loader is
// opened at run time, so the program also starts where there is none, and says so.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace xsched::bench {

class OpenClLoader {
 public:
  OpenClLoader() : library_(dlopen("libOpenCL.so.1", RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(std::string("there is no OpenCL: ") + dlerror());
  }
  template <typename Function>
  Function* Find(const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr) throw std::runtime_error(std::string("OpenCL's loader has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  void* library_;  // stays open
};

// The functions by their names.
#define XSCHED_FUNCTION(name) decltype(::name)* name = loader.Find<decltype(::name)>(#name)
struct OpenClFunctions {
  OpenClLoader loader;
  XSCHED_FUNCTION(clGetPlatformIDs);
  XSCHED_FUNCTION(clGetDeviceIDs);
  XSCHED_FUNCTION(clCreateContext);
  XSCHED_FUNCTION(clReleaseContext);
  XSCHED_FUNCTION(clCreateCommandQueue);
  XSCHED_FUNCTION(clReleaseCommandQueue);
  XSCHED_FUNCTION(clCreateProgramWithSource);
  XSCHED_FUNCTION(clBuildProgram);
  XSCHED_FUNCTION(clReleaseProgram);
  XSCHED_FUNCTION(clCreateKernel);
  XSCHED_FUNCTION(clReleaseKernel);
  XSCHED_FUNCTION(clSetKernelArg);
  XSCHED_FUNCTION(clCreateBuffer);
  XSCHED_FUNCTION(clReleaseMemObject);
  XSCHED_FUNCTION(clEnqueueNDRangeKernel);
  XSCHED_FUNCTION(clWaitForEvents);
  XSCHED_FUNCTION(clGetEventProfilingInfo);
  XSCHED_FUNCTION(clReleaseEvent);
  XSCHED_FUNCTION(clFlush);
  XSCHED_FUNCTION(clFinish);
};
#undef XSCHED_FUNCTION

}  // namespace xsched::bench
