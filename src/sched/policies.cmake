# Which policies a build has: whoever adds one adds its file, and edits no list.
set(XSCHED_POLICY_DIR ${CMAKE_CURRENT_LIST_DIR}/policy)
set(XSCHED_POLICY_REGISTRY ${CMAKE_CURRENT_LIST_DIR}/core/policy.cc)
set(XSCHED_POLICY_LIST_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/core/policy_list.h.in)

# The policies and their tests: the files of policy/.
file(GLOB XSCHED_POLICIES CONFIGURE_DEPENDS ${XSCHED_POLICY_DIR}/*.cc)
set(XSCHED_POLICY_TESTS ${XSCHED_POLICIES})
list(FILTER XSCHED_POLICIES EXCLUDE REGEX "_test\\.cc$")
list(FILTER XSCHED_POLICY_TESTS INCLUDE REGEX "_test\\.cc$")

# xsched_add_policies(TARGET files…): compiles the policies, and their registry, into TARGET. A program may have a registry
# of its own: it takes precedence over that of the libraries that it links.
function(xsched_add_policies target)
  set(declarations "")
  set(getters "")
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME_WE)
    if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
      message(FATAL_ERROR "${file}: a policy's file is named as its namespace")
    endif()
    string(APPEND declarations "namespace ${name} {\nconst Policy& Get();\n}\n")
    list(APPEND getters ${name}::Get)
  endforeach()
  list(JOIN getters ", " getters)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${target})
  configure_file(${XSCHED_POLICY_LIST_TEMPLATE} ${generated}/sched/policy_list.h @ONLY)
  target_sources(${target} PRIVATE ${ARGN} ${XSCHED_POLICY_REGISTRY})
  target_include_directories(${target} PRIVATE ${generated})
endfunction()
