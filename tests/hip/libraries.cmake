# AMD's rocBLAS, hipBLAS and MIOpen, where they are installed (scripts/test-rocm.sh does so), as PyTorch's wheels have them: beside
# a copied file of the installed runtime (over.cmake), whose name they need.
set(bundled ${CMAKE_CURRENT_BINARY_DIR}/installed/bundled)
string(REGEX REPLACE ".*/(.*\\.so\\.[0-9]+).*" "\\1" runtime_name ${installed})
set(libraries "")
foreach(name rocblas hipblas MIOpen)
  string(TOLOWER ${name} folder)
  find_library(Hip_${name}_LIBRARY ${name} PATHS /opt/rocm/lib)
  find_path(Hip_${name}_INCLUDE_DIR ${folder}/${folder}.h PATHS /opt/rocm/include)
  if(NOT Hip_${name}_LIBRARY OR NOT Hip_${name}_INCLUDE_DIR)
    message(STATUS "HIP tests: without ${name}, and so without AMD's libraries")
    return()
  endif()
  get_filename_component(library ${Hip_${name}_LIBRARY} REALPATH)
  string(REGEX REPLACE ".*/(.*\\.so\\.[0-9]+).*" "\\1" file ${library})
  add_custom_command(OUTPUT ${bundled}/${file}
    COMMAND ${CMAKE_COMMAND} -E copy ${library} ${bundled}/${file}
    COMMAND ${PATCHELF} --replace-needed ${runtime_name} libamdhip64.so --force-rpath --set-rpath "$ORIGIN" ${bundled}/${file}
    DEPENDS ${library} ${bundled}/libamdhip64.so VERBATIM)
  list(APPEND libraries ${bundled}/${file})
endforeach()
add_custom_target(hip_bundled_libraries DEPENDS ${libraries})

# hip_library_test(NAME): NAME_test.cc loads NAME_program.cc, which is linked to the libraries.
function(hip_library_test name)
  set(program hip_${name}_program)
  add_library(${program} SHARED ${name}_program.cc)
  hip_options(${program})
  add_dependencies(${program} hip_bundled_libraries hip_bundled_runtime_installed)
  target_include_directories(${program} SYSTEM PRIVATE
    ${Hip_rocblas_INCLUDE_DIR} ${Hip_hipblas_INCLUDE_DIR} ${Hip_MIOpen_INCLUDE_DIR})
  target_link_libraries(${program} PRIVATE ${libraries}
                        ${CMAKE_CURRENT_BINARY_DIR}/installed/link/libamdhip64.so)
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags -Wl,--as-needed)
  set_target_properties(${program} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" LIBRARY_OUTPUT_DIRECTORY ${bundled})
  hip_test(hip_${name}_test ${under_xsched} ${name}_test.cc)
  string(TOUPPER ${name} upper)
  target_compile_definitions(hip_${name}_test PRIVATE TEST_${upper}_PROGRAM="$<TARGET_FILE:${program}>")
  add_dependencies(hip_${name}_test ${program})
  hip_discover(hip_${name}_test Hip ${preloaded} TEST_INSTALLED_RUNTIME=${installed}
               TEST_BUNDLED_PROGRAM=$<TARGET_FILE:hip_bundled_program_installed>
               TEST_OTHER_PROGRAM=$<TARGET_FILE:hip_other_program_installed>)
endfunction()

hip_library_test(blas)
get_filename_component(folder ${Hip_rocblas_LIBRARY} DIRECTORY)
file(GLOB kernels_of_blas ${folder}/rocblas/*/library ${folder}/rocblas/library)
target_compile_definitions(hip_blas_test PRIVATE TEST_BLAS_KERNELS="${kernels_of_blas}")
hip_library_test(miopen)
target_compile_definitions(hip_miopen_test PRIVATE TEST_MIOPEN_CACHE="${CMAKE_CURRENT_BINARY_DIR}/miopen-cache")

find_program(ROCBLAS_TEST rocblas-test PATHS /usr/libexec/rocm/librocblas5-tests /usr/libexec/rocm/librocblas4-tests /opt/rocm/bin)
if(ROCBLAS_TEST)
  hip_script_test(HipProcesses hip_client_installed rocblas_program.py rocblas_passes_its_tests_while_it_is_held_time_and_again)
  set_tests_properties(HipProcesses.rocblas_passes_its_tests_while_it_is_held_time_and_again PROPERTIES TIMEOUT 1800)
endif()
