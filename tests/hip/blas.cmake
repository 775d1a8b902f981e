# AMD's BLAS libraries, where they are installed (scripts/test-rocm.sh does so), as PyTorch's wheels have them: beside the copy of
# the runtime in ${bundled}, whose name they are made to say.
find_library(RocBlas_LIBRARY rocblas PATHS /opt/rocm/lib)
find_library(HipBlas_LIBRARY hipblas PATHS /opt/rocm/lib)
find_path(RocBlas_INCLUDE_DIR rocblas/rocblas.h PATHS /opt/rocm/include)
find_path(HipBlas_INCLUDE_DIR hipblas/hipblas.h PATHS /opt/rocm/include)
if(NOT (RocBlas_LIBRARY AND HipBlas_LIBRARY AND RocBlas_INCLUDE_DIR AND HipBlas_INCLUDE_DIR))
  message(STATUS "HIP tests: without rocBLAS and hipBLAS")
  return()
endif()
get_filename_component(folder ${RocBlas_LIBRARY} DIRECTORY)
file(GLOB kernels_of_blas ${folder}/rocblas/*/library ${folder}/rocblas/library)

set(blas "")
foreach(library ${RocBlas_LIBRARY} ${HipBlas_LIBRARY})
  get_filename_component(library ${library} REALPATH)
  string(REGEX REPLACE ".*/(.*\\.so\\.[0-9]+).*" "\\1" name ${library})
  add_custom_command(OUTPUT ${bundled}/${name}
    COMMAND ${CMAKE_COMMAND} -E copy ${library} ${bundled}/${name}
    COMMAND ${PATCHELF} --replace-needed ${runtime_name} libamdhip64.so --force-rpath --set-rpath "$ORIGIN" ${bundled}/${name}
    DEPENDS ${library} ${bundled}/libamdhip64.so VERBATIM)
  list(APPEND blas ${bundled}/${name})
endforeach()
add_custom_target(hip_bundled_blas DEPENDS ${blas})

add_library(hip_blas_program SHARED blas_program.cc)
hip_options(hip_blas_program)
add_dependencies(hip_blas_program hip_bundled_blas hip_bundled_runtime)
target_include_directories(hip_blas_program SYSTEM PRIVATE ${RocBlas_INCLUDE_DIR} ${HipBlas_INCLUDE_DIR})
target_link_libraries(hip_blas_program PRIVATE ${blas} ${to_link})
target_link_options(hip_blas_program PRIVATE -Wl,--disable-new-dtags)
set_target_properties(hip_blas_program PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" LIBRARY_OUTPUT_DIRECTORY ${bundled})

hip_test(hip_blas_test SOURCES blas_test.cc)
target_compile_definitions(hip_blas_test PRIVATE
  TEST_BLAS_PROGRAM="$<TARGET_FILE:hip_blas_program>" TEST_BLAS_KERNELS="${kernels_of_blas}")
add_dependencies(hip_blas_test hip_blas_program)

find_program(ROCBLAS_TEST rocblas-test PATHS /usr/libexec/rocm/librocblas4-tests /opt/rocm/bin)
if(ROCBLAS_TEST)
  hip_script_test(rocblas_program.py rocblas_passes_its_tests_while_it_is_held_time_and_again)
  set_tests_properties(HipProcesses.rocblas_passes_its_tests_while_it_is_held_time_and_again PROPERTIES TIMEOUT 900)
endif()
