# The policies of a build: all files of policy/. To add one, add its file. There is no list to edit.

# xsched_policy_files(POLICIES TESTS): sets both to the files of policy/.
function(xsched_policy_files policies tests)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/policy/*.cc)
  set(tests_of_policies ${files})
  list(FILTER files EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests_of_policies INCLUDE REGEX "_test\\.cc$")
  set(${policies} ${files} PARENT_SCOPE)
  set(${tests} ${tests_of_policies} PARENT_SCOPE)
endfunction()

# xsched_add_policies(TARGET [others…]): compiles the policies, other files that are policies, and a registry of all of
# them into TARGET. A program may have a registry of its own. It takes precedence over those of the libraries that the
# program links.
function(xsched_add_policies target)
  xsched_policy_files(policies tests)
  list(APPEND policies ${ARGN})
  set(declarations "")
  set(getters "")
  foreach(file IN LISTS policies)
    get_filename_component(name ${file} NAME_WE)
    if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
      message(FATAL_ERROR "${file}: a policy's file is named as its namespace")
    endif()
    string(APPEND declarations "namespace ${name} {\nconst Policy& Get();\n}\n")
    list(APPEND getters ${name}::Get)
  endforeach()
  list(JOIN getters ", " getters)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${target})
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/core/policy_list.h.in ${generated}/sched/policy_list.h @ONLY)
  target_sources(${target} PRIVATE ${policies} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/core/policy.cc)
  # A program's registry takes the place of this whole file.
  set_source_files_properties(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/core/policy.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(${target} PRIVATE ${generated})
endfunction()
