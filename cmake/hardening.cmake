# xsched_harden(NAME): what makes a fault in memory harder to use. The test Install.programs_and_libraries_are_hardened reads it from
# the files. Without optimization _FORTIFY_SOURCE does nothing, and sanitizers find more than all of it.
function(xsched_harden name)
  target_link_options(${name} PRIVATE -Wl,-z,relro -Wl,-z,now $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
  if(NOT XSCHED_SANITIZE AND NOT XSCHED_FUZZ AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$")
    target_compile_options(${name} PRIVATE -fstack-protector-strong ${xsched_hardening})
    if(NOT xsched_fortified)
      target_compile_definitions(${name} PRIVATE _FORTIFY_SOURCE=2)
    endif()
  endif()
endfunction()

include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
set(xsched_hardening)
# The last two: a process keeps the processor's protection of control flow only if each of its libraries is built for it.
foreach(flag -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "XSCHED_HAS${flag}" has)
  check_cxx_compiler_flag(-Werror\ ${flag} ${has})
  if(${has})
    list(APPEND xsched_hardening ${flag})
  endif()
endforeach()
# Debian's packages and other systems bring the definition with their flags.
set(CMAKE_REQUIRED_FLAGS -O2)
check_cxx_source_compiles("
#if !_FORTIFY_SOURCE
#error
#endif
int main() {}" xsched_fortified)
unset(CMAKE_REQUIRED_FLAGS)
