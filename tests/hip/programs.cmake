# The programs of the tests, which are the same over every runtime.

# hip_test(NAME [LINKED] [SCHEDULER …] SOURCES … [LIBS …])      LINKED: objects, to be linked to a runtime
function(hip_test name)
  cmake_parse_arguments(T "LINKED" "SCHEDULER" "SOURCES;LIBS" ${ARGN})
  if(NOT T_SCHEDULER)
    set(T_SCHEDULER APP)
  endif()
  if(T_LINKED)
    add_library(${name} OBJECT main.cc ${T_SOURCES})
  else()
    add_executable(${name} main.cc ${T_SOURCES})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endif()
  hip_options(${name})
  target_compile_definitions(${name} PRIVATE XSCHED_TEST_SCHEDULER="${T_SCHEDULER}" TEST_SHIM="$<TARGET_FILE:shimhip>")
  # The agent also where nothing of it is called: the runtime is to find it loaded.
  target_link_libraries(${name} PUBLIC ${T_LIBS} -Wl,--no-as-needed standin_hsa -Wl,--as-needed GTest::gtest Threads::Threads
                        ${CMAKE_DL_LIBS})
  add_dependencies(hip_tests ${name} shimhip)
endfunction()

set(under_xsched LIBS halhip preempt SOURCES queues.cc held.cc)
hip_test(hip_native_test SOURCES native_test.cc)
hip_test(hip_two_instances_test ${under_xsched} two_instances_test.cc)
hip_test(hip_late_loading_test ${under_xsched} late_loading_test.cc)
hip_test(hip_scheduled_test SCHEDULER LCL ${under_xsched} scheduled_test.cc)
hip_test(hip_profiled_test LIBS halhip preempt SOURCES queues.cc profiled_test.cc)
target_compile_definitions(hip_profiled_test PRIVATE TEST_PROFILER="$<TARGET_FILE:shim_hip_profiler>")
add_dependencies(hip_profiled_test shim_hip_profiler)
hip_test(hip_program_test LINKED ${under_xsched} program_test.cc fork_test.cc memory_test.cc)

# It takes the dispatch table itself.
add_executable(hip_table_test table_test.cc)
set_target_properties(hip_table_test PROPERTIES ENABLE_EXPORTS ON RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
xsched_options(hip_table_test)
target_include_directories(hip_table_test PRIVATE ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(hip_table_test PRIVATE -Wl,--no-as-needed standin_hsa -Wl,--as-needed GTest::gtest ${CMAKE_DL_LIBS})
add_dependencies(hip_table_test xsched_hip_generated)
add_dependencies(hip_tests hip_table_test)

# What is linked to a runtime, as a library.
add_library(hip_program OBJECT program.cc)
hip_options(hip_program)
# Who calls is told by where a call returns to: a function that only jumps on to HIP's counts as its caller.
target_compile_options(hip_program PRIVATE -fPIC -fno-optimize-sibling-calls)

# Of several processes, started as people do.
add_library(hip_client OBJECT hip_client.cc)
hip_options(hip_client)
target_link_libraries(hip_client PUBLIC -Wl,--no-as-needed standin_hsa -Wl,--as-needed Threads::Threads)
add_dependencies(hip_tests xsched xserver)
