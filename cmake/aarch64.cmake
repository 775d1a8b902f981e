# Debian's compiler for AArch64, and its emulator, in which tests run.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# OpenCL's headers are those of any processor; the folder that they are in has this machine's as well.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
file(CREATE_LINK /usr/include/CL ${CMAKE_BINARY_DIR}/headers/CL SYMBOLIC)
set(OpenCL_INCLUDE_DIR ${CMAKE_BINARY_DIR}/headers CACHE PATH "")
set(OpenCL_LIBRARY OpenCL CACHE STRING "None is linked")
