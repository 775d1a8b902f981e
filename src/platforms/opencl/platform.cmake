option(XSCHED_OPENCL "Build the OpenCL platform" ON)
if(XSCHED_OPENCL)
  if(XSCHED_MACHINE)
    # Only tests link the loader, and there are none.
    set(OpenCL_LIBRARY OpenCL CACHE STRING "None is linked")
  endif()
  find_package(OpenCL REQUIRED)
endif()
set(XSCHED_OPENCL_DESCRIPTION "XSched for OpenCL command queues")
