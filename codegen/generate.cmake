# xsched_generate(PLATFORM [FILES file…] DEPENDS file… ARGUMENTS argument… CHECK test): runs
# codegen/PLATFORM.py. What it writes is in ${PROJECT_BINARY_DIR}/generated/PLATFORM: the files that each platform has, and FILES;
# the target xsched_PLATFORM_generated makes them. The test CHECK fails for each function that nobody has classified.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)

function(xsched_generate platform)
  cmake_parse_arguments(G "" "CHECK" "FILES;DEPENDS;ARGUMENTS" ${ARGN})
  set(generated ${PROJECT_BINARY_DIR}/generated/${platform})
  set(generator ${PROJECT_SOURCE_DIR}/codegen/${platform}.py)
  file(GLOB sources ${PROJECT_SOURCE_DIR}/codegen/*.py)
  list(TRANSFORM G_FILES PREPEND ${generated}/)
  add_custom_command(
    OUTPUT ${generated}/functions.h ${generated}/functions.cc ${generated}/wrappers.h ${generated}/wrappers.cc
           ${generated}/shim${platform}.map ${generated}/coverage.txt ${G_FILES}
    COMMAND Python3::Interpreter -B ${generator} ${G_ARGUMENTS} --out ${generated}
    DEPENDS ${G_DEPENDS} ${sources}
    COMMENT "Generating the ${platform} shim" VERBATIM)
  add_custom_target(xsched_${platform}_generated DEPENDS ${generated}/functions.h)
  if(XSCHED_TESTS)
    add_test(NAME ${G_CHECK} COMMAND Python3::Interpreter -B ${generator} ${G_ARGUMENTS} --check)
  endif()
endfunction()
