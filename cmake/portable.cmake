# Programs and libraries for every Linux with glibc 2.17 or later, on XSCHED_MACHINE: scripts/portable-toolchain.sh gets what is needed.
set(XSCHED_MACHINE ${CMAKE_HOST_SYSTEM_PROCESSOR} CACHE STRING "The processor that is built for: x86_64 or aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES XSCHED_MACHINE)
set(root ${CMAKE_CURRENT_LIST_DIR}/../build/portable/${XSCHED_MACHINE})
cmake_path(NORMAL_PATH root)
set(CMAKE_C_COMPILER ${root}/bin/cc)
set(CMAKE_CXX_COMPILER ${root}/bin/c++)
set(CMAKE_AR ${root}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${root}/bin/ranlib CACHE FILEPATH "")
# The same bytes, whatever the folder's name is.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH source)
set(CMAKE_C_FLAGS_INIT "-ffile-prefix-map=${source}=.")
set(CMAKE_CXX_FLAGS_INIT "-ffile-prefix-map=${source}=.")
# Loaders of drivers are linked as Debian 12 has them, with a newer glibc, and used as each system has them.
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--allow-shlib-undefined)
if(NOT XSCHED_MACHINE STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${XSCHED_MACHINE})
  set(CMAKE_STRIP ${XSCHED_MACHINE}-linux-gnu-strip)
  # It runs programs of the build, which write manual pages.
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${XSCHED_MACHINE} -L /usr/${XSCHED_MACHINE}-linux-gnu)
endif()

set(CMAKE_FIND_ROOT_PATH ${root}/sysroot)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The headers of drivers may be elsewhere.
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE ${XSCHED_MACHINE}-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${root}/sysroot/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root}/sysroot)
