# The tests over one pair of runtimes.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# How the calls of a program come to the shim.
set(preloaded LD_PRELOAD=$<TARGET_FILE:shimhip>)
set(by_name ${preloaded} ROCPROFILER_REGISTER_ENABLED=0)
set(registered ROCPROFILER_REGISTER_LIBRARY=$<TARGET_FILE:shimhip>)

# hip_discover(TARGET PREFIX NAME=VALUE…): its tests, with this environment. It is set when CTest reads the tests:
# gtest_discover_tests takes no properties that are lists.
function(hip_discover target prefix)
  set(tests ${target}_${prefix})
  gtest_discover_tests(${target} TEST_PREFIX ${prefix}. TEST_LIST ${tests} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 60 LABELS preloaded)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${tests}_environment.cmake)
  file(GENERATE OUTPUT ${file} CONTENT "set_tests_properties(\${${tests}} PROPERTIES ENVIRONMENT \"${ARGN}\")\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# hip_script_test(PREFIX CLIENT SCRIPT TEST): programs of several processes, with a server.
function(hip_script_test prefix client script name)
  add_test(NAME ${prefix}.${name}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/${script}
                   --bin $<TARGET_FILE_DIR:xserver> --lib $<TARGET_FILE_DIR:preempt> ${name})
  set(environment HIP_CLIENT=$<TARGET_FILE:${client}> STANDIN_HSA=$<TARGET_FILE_DIR:standin_hsa> ROCBLAS_TEST=${ROCBLAS_TEST})
  # They measure how soon things happen: nothing else beside them.
  set_tests_properties(${prefix}.${name} PROPERTIES TIMEOUT 60 RUN_SERIAL ON LABELS slow ENVIRONMENT "${environment}")
endfunction()

# hip_bundle(LABEL RUNTIME): copies the file of the runtime to LABEL/bundled, as PyTorch's wheels do: the file is renamed, its SONAME
# is kept. Libraries that use it need the new name, and find it beside themselves. They are linked to the file in LABEL/link, whose
# SONAME is the new name.
function(hip_bundle label runtime)
  set(place ${CMAKE_CURRENT_BINARY_DIR}/${label})
  get_filename_component(folder ${runtime} DIRECTORY)
  add_custom_command(OUTPUT ${place}/bundled/libamdhip64.so ${place}/link/libamdhip64.so
    COMMAND ${CMAKE_COMMAND} -E make_directory ${place}/bundled ${place}/link
    COMMAND ${CMAKE_COMMAND} -E copy ${runtime} ${place}/bundled/libamdhip64.so
    # What it needs stays where it is.
    COMMAND ${PATCHELF} --set-rpath ${folder} ${place}/bundled/libamdhip64.so
    COMMAND ${CMAKE_COMMAND} -E copy ${place}/bundled/libamdhip64.so ${place}/link/libamdhip64.so
    COMMAND ${PATCHELF} --set-soname libamdhip64.so ${place}/link/libamdhip64.so
    DEPENDS ${runtime} VERBATIM)
  add_custom_target(hip_bundled_runtime_${label} DEPENDS ${place}/bundled/libamdhip64.so ${place}/link/libamdhip64.so)
endfunction()

# hip_library(TARGET LINKED_TO): a program as a library.
function(hip_library target linked_to)
  add_library(${target} SHARED $<TARGET_OBJECTS:hip_program> ${kernels})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(${target} hip_kernels)
  target_link_libraries(${target} PRIVATE ${linked_to})
  target_link_options(${target} PRIVATE -Wl,-z,lazy)
endfunction()

# hip_tests_over(LABEL PREFIX … BUNDLED … INSTALLED … WAYS …): a program with a runtime of its own (BUNDLED), and another one with the
# runtime of the system (INSTALLED). WAYS: how their calls come to the shim.
function(hip_tests_over label)
  cmake_parse_arguments(T "" "PREFIX;BUNDLED;INSTALLED" "WAYS" ${ARGN})
  set(place ${CMAKE_CURRENT_BINARY_DIR}/${label})
  hip_bundle(${label} ${T_BUNDLED})
  hip_library(hip_bundled_program_${label} ${place}/link/libamdhip64.so)
  add_dependencies(hip_bundled_program_${label} hip_bundled_runtime_${label})
  target_link_options(hip_bundled_program_${label} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(hip_bundled_program_${label} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN" LIBRARY_OUTPUT_DIRECTORY ${place}/bundled)
  # It names its runtime by its path: by its name the dynamic linker would give it the bundled one, when that is loaded.
  hip_library(hip_other_program_${label} ${T_INSTALLED})
  string(REGEX REPLACE ".*/(.*\\.so\\.[0-9]+).*" "\\1" name ${T_INSTALLED})
  add_custom_command(TARGET hip_other_program_${label} POST_BUILD
    COMMAND ${PATCHELF} --replace-needed ${name} ${T_INSTALLED} $<TARGET_FILE:hip_other_program_${label}> VERBATIM)
  add_dependencies(hip_tests hip_bundled_program_${label} hip_other_program_${label})

  set(runtimes TEST_INSTALLED_RUNTIME=${T_INSTALLED} TEST_BUNDLED_RUNTIME=${place}/bundled/libamdhip64.so
      TEST_BUNDLED_PROGRAM=$<TARGET_FILE:hip_bundled_program_${label}>
      TEST_OTHER_PROGRAM=$<TARGET_FILE:hip_other_program_${label}>)
  hip_discover(hip_native_test ${T_PREFIX} ${runtimes})
  hip_discover(hip_late_loading_test ${T_PREFIX} ${runtimes})
  foreach(way IN LISTS T_WAYS)
    set(prefix ${T_PREFIX})
    if(NOT way STREQUAL "preloaded")
      string(APPEND prefix -${way})
    endif()
    hip_discover(hip_two_instances_test ${prefix} ${runtimes} ${${way}})
    hip_discover(hip_scheduled_test ${prefix} ${runtimes} ${${way}})
  endforeach()
  if(T_BUNDLED STREQUAL T_INSTALLED)
    hip_linked_tests_over(${label} ${T_INSTALLED} ${T_PREFIX} ${T_WAYS})
  endif()
  hip_python_tests_over(${T_PREFIX} ${runtimes})
endfunction()

# hip_linked_tests_over(LABEL RUNTIME PREFIX WAYS…): programs that are linked to one runtime.
function(hip_linked_tests_over label runtime prefix)
  foreach(program hip_program_test hip_client)
    add_executable(${program}_${label} ${kernels})
    target_link_libraries(${program}_${label} PRIVATE ${program} ${runtime})
    set_target_properties(${program}_${label} PROPERTIES LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(${program}_${label} hip_kernels)
    add_dependencies(hip_tests ${program}_${label})
  endforeach()
  foreach(way IN LISTS ARGN)
    if(way STREQUAL "preloaded")
      hip_discover(hip_program_test_${label} ${prefix} ${${way}})
    else()
      hip_discover(hip_program_test_${label} ${prefix}-${way} ${${way}})
    endif()
  endforeach()
  foreach(test a_less_urgent_process_is_held_and_goes_on without_the_server_all_programs_run
               processes_of_a_tenant_have_no_more_memory_than_its_limit_together a_server_that_hangs_makes_nobody_wait)
    hip_script_test(${prefix}Processes hip_client_${label} hip_processes.py ${test})
  endforeach()
endfunction()

# hip_table_tests_over(PREFIX RUNTIME): what a runtime with a dispatch table has more.
function(hip_table_tests_over prefix runtime)
  hip_discover(hip_profiled_test ${prefix} TEST_INSTALLED_RUNTIME=${runtime} ${preloaded})
  hip_discover(hip_table_test ${prefix} TEST_INSTALLED_RUNTIME=${runtime})
  add_test(NAME ${prefix}.the_registry_knows_what_it_exports
           COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/codegen/wrappers.py hip --library ${runtime} --check)
endfunction()

# hip_triton_tests_over(PREFIX RUNTIME WAYS…): Triton launches its kernels, where it was fetched and this Python can import it.
function(hip_triton_tests_over prefix runtime)
  set(triton ${PROJECT_SOURCE_DIR}/build/hip/triton)
  if(NOT EXISTS ${triton} OR Python3_VERSION VERSION_LESS 3.12)
    return()
  endif()
  foreach(way IN LISTS ARGN)
    set(test ${prefix}.triton.${way})
    add_test(NAME ${test} COMMAND Python3::Interpreter -B -m unittest triton_test WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set(environment ${${way}} XSCHED_AUTO_XQUEUE=ON TRITON_LIBHIP_PATH=${runtime} TRITON_CACHE_DIR=${CMAKE_CURRENT_BINARY_DIR}/triton
        XSCHED_LIBRARY_DIR=$<TARGET_FILE_DIR:preempt> LD_LIBRARY_PATH=$<TARGET_FILE_DIR:standin_hsa>
        "PYTHONPATH=${PROJECT_SOURCE_DIR}/python:${CMAKE_CURRENT_SOURCE_DIR}/torch_for_triton:${triton}")
    set_tests_properties(${test} PROPERTIES TIMEOUT 120 ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# hip_python_tests_over(PREFIX NAME=VALUE…): the Python class, over a runtime instance that a program brings.
function(hip_python_tests_over prefix)
  foreach(case WithoutShim UnderShim)
    add_test(NAME ${prefix}.python_streams.${case}
             COMMAND Python3::Interpreter -B -m unittest foreign_stream_test.${case}
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set(environment ${ARGN} "PYTHONPATH=${PROJECT_SOURCE_DIR}/python" XSCHED_LIBRARY_DIR=$<TARGET_FILE_DIR:preempt>
        LD_LIBRARY_PATH=$<TARGET_FILE_DIR:standin_hsa>)
    if(case STREQUAL UnderShim)
      list(APPEND environment XSCHED_AUTO_XQUEUE=ON ${preloaded})
    endif()
    set_tests_properties(${prefix}.python_streams.${case} PROPERTIES TIMEOUT 60 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
