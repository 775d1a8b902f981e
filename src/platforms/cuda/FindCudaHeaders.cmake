# Finds the headers of CUDA's driver API: CudaHeaders_FOUND, CudaHeaders_INCLUDE_DIR. It searches CUDA_HOME, the
# toolkit's usual place, and the places of Python's nvidia-cuda-runtime packages and of scripts/fetch-cuda-headers.sh.
# No library of CUDA is linked. It also runs alone (cmake -P), which that script uses.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  find_package(Python3 3.11 QUIET COMPONENTS Interpreter)
endif()
if(Python3_SITELIB)
  file(GLOB _python_packages ${Python3_SITELIB}/nvidia/cu*/include)
endif()
find_path(CudaHeaders_INCLUDE_DIR cudaTypedefs.h
          HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include ${_python_packages}
                ${CMAKE_CURRENT_LIST_DIR}/../../../build/cuda-headers/include)
mark_as_advanced(CudaHeaders_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders REQUIRED_VARS CudaHeaders_INCLUDE_DIR
                                  REASON_FAILURE_MESSAGE "the CUDA platform is left out")
