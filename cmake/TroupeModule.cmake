# One call describes one module, one program. A folder's CMakeLists.txt is then its manifest: files and dependencies.

include(GNUInstallDirs)
set(TROUPE_CMAKE_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
define_property(TARGET PROPERTY TROUPE_SOURCE_DIRS BRIEF_DOCS "private include folders of a module")
define_property(TARGET PROPERTY TROUPE_PRIVATE_DEPENDENCIES BRIEF_DOCS "what a module's private headers need")

# Builds all that is installed, and nothing else.
add_custom_target(troupe_installed)

# troupe_module(<name>
#   HEADERS <public headers>...           include/troupe/..., installed
#   SOURCES <sources>...                  src/...
#   [CAPNP <schemas>...]                  src/a/b.capnp is reached as "a/b.capnp.h" in src/
#   [DEPENDENCIES <targets>...]           what its public headers use
#   [PRIVATE_DEPENDENCIES <targets>...]   what only its sources use
#   [PRECOMPILED <header>]                what most of its sources include of other libraries
#   [INTERNALS <modules>...]              modules whose private headers its sources may use
#   [PRIVATE])                            a part of this tree's programs: no public headers, not installed
# makes the static library troupe_<name>, also called troupe::<name>, and its part of the package: collective, train and
# tune are components of their own, what lies below them is component runtime.
function(troupe_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PRIVATE" "PRECOMPILED"
    "HEADERS;SOURCES;CAPNP;DEPENDENCIES;PRIVATE_DEPENDENCIES;INTERNALS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "troupe_module(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(component runtime)
  if(name MATCHES "^(collective|train|tune)$")
    set(component ${name})
  endif()

  set(target troupe_${name})
  add_library(${target} STATIC ${arg_SOURCES} ${arg_HEADERS})
  add_library(troupe::${name} ALIAS ${target})
  set(private_dirs ${CMAKE_CURRENT_SOURCE_DIR}/src)
  if(arg_CAPNP)
    list(APPEND private_dirs ${CMAKE_CURRENT_BINARY_DIR}/generated)
    _troupe_generate_capnp(${target} ${arg_CAPNP})
  endif()

  target_compile_features(${target} PUBLIC cxx_std_20)
  if(NOT arg_PRIVATE)
    target_include_directories(${target}
      PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endif()
  target_include_directories(${target} PRIVATE ${private_dirs})
  target_link_libraries(${target} PUBLIC ${arg_DEPENDENCIES} PRIVATE ${arg_PRIVATE_DEPENDENCIES})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    TROUPE_SOURCE_DIRS "${private_dirs}"
    TROUPE_PRIVATE_DEPENDENCIES "${arg_PRIVATE_DEPENDENCIES}")
  troupe_use_internals(${target} ${arg_INTERNALS})
  troupe_compile_in_batches(${target} 16)
  if(arg_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${arg_PRECOMPILED})
  endif()

  if(arg_PRIVATE)
    return()
  endif()
  install(TARGETS ${target} EXPORT troupe_${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT ${component})
  _troupe_strip_archive(${target} ${component})
  add_dependencies(troupe_installed ${target})
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${component}
    FILES_MATCHING PATTERN "*.hpp")
  set_property(GLOBAL APPEND PROPERTY TROUPE_COMPONENTS ${component})
endfunction()

# troupe_program(<name> SOURCES <sources>... [DEPENDENCIES <targets>...] [INTERNALS <modules>...] [INSTALL])
# makes an executable; INSTALL puts it into <prefix>/bin.
function(troupe_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "" "SOURCES;DEPENDENCIES;INTERNALS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "troupe_program(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDENCIES})
  troupe_use_internals(${name} ${arg_INTERNALS})
  troupe_compile_in_batches(${name} 16)
  if(TROUPE_UNITY AND "troupe::train" IN_LIST arg_DEPENDENCIES)
    troupe_precompile_with_options(${name} troupe_torch_headers
      HEADERS ${TROUPE_TORCH_HEADERS}
      DEPENDENCIES troupe::train)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src)
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  endif()
  if(arg_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
    add_dependencies(troupe_installed ${name})
  endif()
endfunction()

# troupe_built_paths(<target> [<NAME> <path>]...)
# NAME in the sources is that path. What is in this clone, or beside it, is named as seen from where it is built
# (tests/support/built.hpp), so that the sources of all clones are compiled alike.
function(troupe_built_paths target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
  cmake_path(GET PROJECT_SOURCE_DIR PARENT_PATH around)
  math(EXPR last "${ARGC} - 1")
  foreach(at RANGE 1 ${last} 2)
    math(EXPR next "${at} + 1")
    set(path "${ARGV${next}}")
    cmake_path(IS_PREFIX around "${path}" NORMALIZE is_near)
    if(path MATCHES "^[$]<" OR is_near)
      set(path "$<PATH:RELATIVE_PATH,${path},${PROJECT_BINARY_DIR}>")
    endif()
    target_compile_definitions(${target} PRIVATE "${ARGV${at}}=::troupe::test::built(\"${path}\")")
  endforeach()
endfunction()

# troupe_precompile_with_options(<target> <header>
#   HEADERS <headers>...            what is in the precompiled header
#   [OPTIONS <options>...]          compile options
#   [DEPENDENCIES <targets>...])    what the headers need
# sets the options of the target, and has it take the headers from one precompiled header, which the first call with that
# name makes. A precompiled header fits only what is compiled with the options that it was compiled with, so each set of
# options needs a name of its own.
function(troupe_precompile_with_options target name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "HEADERS;OPTIONS;DEPENDENCIES")
  if(NOT TARGET ${name})
    # It is owned by a program and not by a library, for a program's flags are those of its users.
    set(source ${PROJECT_BINARY_DIR}/cmake/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${arg_DEPENDENCIES})
    target_compile_options(${name} PRIVATE ${arg_OPTIONS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  endif()
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

# What most programs that use LibTorch include of it: parsing that is most of the time that one source takes.
set(TROUPE_TORCH_HEADERS
  <torch/nn/functional/loss.h>
  <torch/nn/modules/activation.h>
  <torch/nn/modules/container/sequential.h>
  <torch/nn/modules/linear.h>
  <torch/optim/sgd.h>
  <torch/utils.h>)

# Lets a target of this tree include the private headers of modules: tests, `troupe` itself, the module above.
function(troupe_use_internals target)
  foreach(module IN LISTS ARGN)
    get_target_property(dirs troupe_${module} TROUPE_SOURCE_DIRS)
    get_target_property(dependencies troupe_${module} TROUPE_PRIVATE_DEPENDENCIES)
    target_include_directories(${target} PRIVATE ${dirs})
    # BUILD_INTERFACE: they are compiled against here, and linked through the module itself.
    foreach(dependency IN LISTS dependencies)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${dependency}>)
    endforeach()
  endforeach()
endfunction()

function(_troupe_generate_capnp target)
  set(output_dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(source_dir ${CMAKE_CURRENT_SOURCE_DIR}/src)
  file(MAKE_DIRECTORY ${output_dir})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE schemas)
  foreach(schema IN LISTS schemas)
    file(RELATIVE_PATH relative ${source_dir} ${schema})
    set(outputs ${output_dir}/${relative}.c++ ${output_dir}/${relative}.h)
    add_custom_command(OUTPUT ${outputs}
      COMMAND ${CAPNP_EXECUTABLE} compile -o${CAPNPC_CXX_EXECUTABLE}:${output_dir}
              --src-prefix=${source_dir} -I${source_dir} -I${CAPNP_INCLUDE_DIRECTORY} ${schema}
      DEPENDS ${schemas}  # one schema may import another
      COMMENT "Generating ${relative}.h"
      VERBATIM)
    set_source_files_properties(${outputs} PROPERTIES COMPILE_OPTIONS -w SKIP_PRECOMPILE_HEADERS ON
      SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(${target} PRIVATE ${outputs})
  endforeach()
endfunction()

# `cmake --install --strip` strips programs only. An archive keeps its symbols, which are linked by, and loses its debug
# information, which is four fifths of it.
function(_troupe_strip_archive target component)
  if(NOT CMAKE_STRIP)
    return()
  endif()
  install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${target}>\"
        COMMAND_ERROR_IS_FATAL ANY)
    endif()" COMPONENT ${component})
endfunction()
