# The kinds of targets of this project, and their rules.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(Threads REQUIRED)
include(hardening)

function(xsched_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wno-missing-field-initializers)
  if(XSCHED_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(XSCHED_CHECK_LOCKS)
    target_compile_definitions(${target} PRIVATE XSCHED_CHECK_LOCKS)
  endif()
  if(XSCHED_SANITIZE)
    # vptr needs RTTI on both sides of a call, and in-process code has none.
    target_compile_options(${target} PRIVATE -fsanitize=${XSCHED_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${XSCHED_SANITIZE})
  endif()
  xsched_harden(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
endfunction()

# Code that may run in a foreign process: no exceptions, no RTTI, nothing of libstdc++ at run time.
# xsched_inproc_static(NAME sources…): a static part of the libraries below; programs may link it as well.
function(xsched_inproc_static name)
  add_library(${name} STATIC ${ARGN})
  xsched_options(${name})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>)
  # libgcc must come last, for operations without an instruction (atomics on AArch64).
  target_link_libraries(${name} PUBLIC Threads::Threads gcc)
endfunction()

# xsched_inproc_shared(NAME MAP sources…): a library for foreign processes. MAP is its version script: what it exports to programs.
function(xsched_inproc_shared name map)
  add_library(${name} SHARED ${ARGN})
  xsched_options(${name})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>)
  if(NOT XSCHED_SANITIZE)
    # gcc has no -nostdlib++, so name the other libraries.
    target_link_options(${name} PRIVATE -nodefaultlibs)
    target_link_libraries(${name} PRIVATE c gcc)
  endif()
  # One script of all maps: zig's linker reads only one.
  set(script ${PROJECT_BINARY_DIR}/generated/exports/${name}.map)
  set(maps $<TARGET_PROPERTY:${name},XSCHED_VERSION_SCRIPTS>)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/exports)
  add_custom_command(OUTPUT ${script} COMMAND ${CMAKE_COMMAND} -E cat ${maps} > ${script} DEPENDS ${maps} COMMAND_EXPAND_LISTS VERBATIM)
  target_sources(${name} PRIVATE ${script})
  xsched_version_script(${name} ${map})
  target_link_options(${name} PRIVATE -Wl,--version-script=${script} -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,--no-undefined -Wl,--as-needed)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${script} BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  target_link_libraries(${name} PRIVATE xsched_freestanding)
endfunction()

# xsched_version_script(NAME MAP): adds a version script to those of a library.
function(xsched_version_script name map)
  set_property(TARGET ${name} APPEND PROPERTY XSCHED_VERSION_SCRIPTS ${map})
endfunction()

# xsched_private_exports(NAME): it also exports to our other libraries what its headers mark with XSCHED_PRIVATE.
function(xsched_private_exports name)
  xsched_version_script(${name} ${PROJECT_SOURCE_DIR}/cmake/private.map)
endfunction()

# xsched_program(NAME sources…): a program of ours (server, tools): the whole standard library and Debian's.
function(xsched_program name)
  add_executable(${name} ${ARGN})
  xsched_options(${name})
endfunction()

# xsched_unity(NAME): with XSCHED_UNITY, its files of one folder are compiled as one, which takes half of the time. So names of one
# folder's unnamed namespaces differ. Not for the shims, whose files name versions of symbols in assembler.
function(xsched_unity name)
  if(NOT XSCHED_UNITY OR NOT TARGET ${name})
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${name} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    cmake_path(IS_PREFIX CMAKE_CURRENT_SOURCE_DIR ${folder} below)
    cmake_path(RELATIVE_PATH folder)
    if(below)
      string(MAKE_C_IDENTIFIER "unity_${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()

# xsched_for_whole_programs(NAME): a static part across whose files a program is optimized, if it asks for that by
# xsched_whole_program(PROGRAM). All else links it file by file: that takes less time, and libraries for foreign processes name
# versions of symbols in assembler, which link-time optimization loses.
function(xsched_for_whole_programs name)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR NOT CMAKE_BUILD_TYPE STREQUAL Release OR XSCHED_SANITIZE)
    return()
  endif()
  # The last one: otherwise the line numbers for debuggers name the folder of the build, whatever -ffile-prefix-map says.
  target_compile_options(${name} PRIVATE -flto -ffat-lto-objects -gno-as-loc-support)
  target_link_options(${name} INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:XSCHED_WHOLE_PROGRAM>>,-flto=auto,-fno-lto>)
endfunction()
function(xsched_whole_program name)
  set_target_properties(${name} PROPERTIES XSCHED_WHOLE_PROGRAM ON)
endfunction()

# xsched_test_options(NAME): of a program of tests. Unlike what they test, tests need not be fast.
function(xsched_test_options name)
  xsched_options(${name})
  xsched_unity(${name})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(XSCHED_SANITIZE OR CMAKE_CROSSCOMPILING)
    target_compile_definitions(${name} PRIVATE XSCHED_FEWER_TRIES) # src/base/testing/tries.h
  endif()
endfunction()

# xsched_test(NAME SOURCES … [ALONE …] LIBS … [LABELS …] [ONE_THREAD]): a GoogleTest program, one ctest test per case.
# ALONE: sources that have names of another one, and are never compiled together with it.
# ONE_THREAD: what it tests has one thread, so that the thread sanitizer would find nothing.
function(xsched_test name)
  cmake_parse_arguments(T "ONE_THREAD" "TIMEOUT" "SOURCES;ALONE;LIBS;LABELS" ${ARGN})
  if(NOT XSCHED_TESTS OR (T_ONE_THREAD AND XSCHED_SANITIZE STREQUAL "thread"))
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  add_executable(${name} ${T_SOURCES} ${T_ALONE})
  if(T_ALONE)
    set_source_files_properties(${T_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  xsched_test_options(${name})
  target_link_libraries(${name} PRIVATE ${T_LIBS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}")
endfunction()
include(GoogleTest)
