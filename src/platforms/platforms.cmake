# Which platforms a build has: whoever adds one adds its folders (here, and in hal/ and shim/), and edits no list.

# XSCHED_PLATFORMS: those that are built; XSCHED_PLATFORMS_LEFT_OUT: the others. Each platform.cmake sets XSCHED_<ID>, whether it is, and XSCHED_<ID>_DESCRIPTION.
# The tools know all of them: a server's programs may have been built elsewhere.
set(XSCHED_PLATFORMS "")
set(XSCHED_PLATFORMS_LEFT_OUT "")
file(GLOB descriptions CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*/platform.cmake)
foreach(file IN LISTS descriptions)
  include(${file})
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(platform ${folder} NAME)
  string(TOUPPER ${platform} id)
  if(XSCHED_${id})
    list(APPEND XSCHED_PLATFORMS ${platform})
  else()
    list(APPEND XSCHED_PLATFORMS_LEFT_OUT ${platform})
  endif()
endforeach()

# xsched_add_platforms(TARGET [folders…]): compiles the descriptors of all platforms, and of others in further folders, with
# their registry into TARGET. A program may have a registry of its own: it takes precedence over that of the libraries that it links.
function(xsched_add_platforms target)
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  file(GLOB descriptors CONFIGURE_DEPENDS ${here}/*/platform.cc)
  foreach(folder IN LISTS ARGN)
    list(APPEND descriptors ${folder}/platform.cc)
  endforeach()
  set(declarations "")
  set(platforms "")
  set(files "")
  foreach(descriptor IN LISTS descriptors)
    get_filename_component(folder ${descriptor} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
      message(FATAL_ERROR "${folder}: a platform's folder is named as its namespace")
    endif()
    string(APPEND declarations "namespace ${name} {\nconst Platform& Get();\n}\n")
    list(APPEND platforms "&${name}::Get()")
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc)
    list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
    list(APPEND files ${sources})
  endforeach()
  list(JOIN platforms ", " platforms)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${target})
  configure_file(${PROJECT_SOURCE_DIR}/src/cli/platform_list.h.in ${generated}/cli/platform_list.h @ONLY)
  target_sources(${target} PRIVATE ${files} ${PROJECT_SOURCE_DIR}/src/cli/platform.cc)
  # A program's registry takes the place of this whole file.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cli/platform.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(${target} PRIVATE ${generated})
endfunction()

# The parameters of devices that were measured, for simulations: the JSON files of all platforms, in the build tree where an
# installed xsched finds them. Sets XSCHED_DEVICE_FILES.
file(GLOB XSCHED_DEVICE_FILES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*/*.json)
file(COPY ${XSCHED_DEVICE_FILES} DESTINATION ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/xsched/devices)
