# xsched_generate(PLATFORM CHECK test [FILES file…] [DEPENDS file…] [ARGUMENTS argument…]): runs codegen/wrappers.py for a platform.
# What it writes is in ${PROJECT_BINARY_DIR}/generated/PLATFORM: the files that each platform has (codegen/shim.py lists them), and
# FILES; the target xsched_PLATFORM_generated makes them. The test CHECK fails for each function that is not classified.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)

function(xsched_generate platform)
  cmake_parse_arguments(G "" "CHECK" "FILES;DEPENDS;ARGUMENTS" ${ARGN})
  set(generated ${PROJECT_BINARY_DIR}/generated/${platform})
  set(generate Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/codegen/wrappers.py ${platform} ${G_ARGUMENTS})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/codegen/*.py ${PROJECT_SOURCE_DIR}/codegen/platforms/${platform}/*.py
       ${PROJECT_SOURCE_DIR}/registry/${platform}/*)
  list(TRANSFORM G_FILES PREPEND ${generated}/)
  add_custom_command(
    OUTPUT ${generated}/functions.h ${generated}/functions.cc ${generated}/wrappers.h ${generated}/wrappers.cc
           ${generated}/shim${platform}.map ${generated}/coverage.txt ${G_FILES}
    COMMAND ${generate} --out ${generated}
    DEPENDS ${sources} ${G_DEPENDS}
    COMMENT "Generating the ${platform} shim" VERBATIM)
  add_custom_target(xsched_${platform}_generated DEPENDS ${generated}/functions.h)
  if(XSCHED_TESTS)
    add_test(NAME ${G_CHECK} COMMAND ${generate} --check)
  endif()
endfunction()
