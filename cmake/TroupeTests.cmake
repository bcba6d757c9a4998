# Tests: one executable per call, one ctest test per TEST_CASE.

find_package(Catch2 2 REQUIRED)
set(_troupe_discover_script ${CMAKE_CURRENT_LIST_DIR}/discover_tests.cmake)
set(_troupe_test_support ${PROJECT_SOURCE_DIR}/tests/support)

# Sanitizers: a report ends the process, so that a test cannot pass over it. A program forks its worker processes while
# it may have threads, which ThreadSanitizer refuses unless told otherwise.
set(_troupe_test_environment
  ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99:handle_sigill=1
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  TSAN_OPTIONS=die_after_fork=0:halt_on_error=1:exitcode=99)

# TROUPE_READERS_PYTHON, TROUPE_PACKAGE_PYTHON, TROUPE_TORCH_PYTHON: the Pythons with the packages of setup/readers.txt,
# setup/python.txt and setup/frameworks_torch.txt, where `./run setup` puts the first two, and `./run test frameworks` the third.
if("$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(_troupe_packages_cache "$ENV{HOME}/.cache")
else()
  set(_troupe_packages_cache "$ENV{XDG_CACHE_HOME}")
endif()
function(_troupe_find_packages name variable)
  file(SHA256 ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/setup/${name}.txt hash)
  string(SUBSTRING ${hash} 0 12 hash)
  set(${variable} ${_troupe_packages_cache}/troupe/${name}-${hash}/bin/python PARENT_SCOPE)
endfunction()
_troupe_find_packages(readers TROUPE_READERS_PYTHON)
_troupe_find_packages(python TROUPE_PACKAGE_PYTHON)
_troupe_find_packages(frameworks_torch TROUPE_TORCH_PYTHON)

# Catch2's runner for tests with a main of their own. It is compiled once, fast rather than to be fast or checked.
function(_troupe_test_runner)
  if(NOT TARGET troupe_test_runner)
    add_library(troupe_test_runner STATIC ${_troupe_test_support}/run_tests.cpp)
    target_compile_options(troupe_test_runner PRIVATE -O0 -g0)
    if(TROUPE_SANITIZER)
      target_compile_options(troupe_test_runner PRIVATE -fno-sanitize=all)
    endif()
    target_include_directories(troupe_test_runner PUBLIC ${_troupe_test_support})
    target_link_libraries(troupe_test_runner PUBLIC Catch2::Catch2)
  endif()
endfunction()

# What nearly every test includes is parsed once, for tests whose own code is optimised and for the others: it need not be
# fast where it does little, and is compiled in two thirds of the time. The arithmetic of train's tests is LibTorch's own,
# which is optimised.
function(_troupe_precompile_test target module is_optimised)
  set(name troupe_test_headers)
  set(level -O0)
  if(is_optimised AND NOT module STREQUAL train)
    set(name troupe_optimised_test_headers)
    set(level -O1)
  endif()
  set(headers ${_troupe_test_support}/precompiled.hpp)
  set(dependencies Catch2::Catch2)
  if(module STREQUAL train)
    if(NOT TROUPE_UNITY)
      return()
    endif()
    set(name troupe_torch_test_headers)
    set(headers ${TROUPE_TORCH_HEADERS} ${PROJECT_SOURCE_DIR}/tests/train/support/catch.hpp)
    set(dependencies troupe::train)
  endif()
  troupe_precompile_with_options(${target} ${name}
    HEADERS ${headers}
    OPTIONS $<$<CONFIG:RelWithDebInfo>:${level}>
    DEPENDENCIES ${dependencies})
endfunction()

# troupe_test_program(<name> SOURCES <sources>... [DEPENDENCIES <targets>...])
# makes a program that tests run: the driver of a cluster, mostly. Its own code does little, as that of a test.
function(troupe_test_program target)
  troupe_program(${target} ${ARGN})
  troupe_precompile_with_options(${target} troupe_test_program_headers
    HEADERS <troupe/troupe.hpp>
    OPTIONS $<$<CONFIG:RelWithDebInfo>:-O0>
    DEPENDENCIES troupe::runtime)
endfunction()

# troupe_tests(<module>
#   SOURCES <sources>...
#   [NAME <name>]               the executable is test_<name>; the module's name if not said
#   [DEPENDENCIES <targets>...]
#   [INTERNALS <modules>...]    further modules whose private headers the tests use
#   [LABELS <labels>...]        besides the module's name
#   [TIMEOUT <seconds>]         of one TEST_CASE; 600 if not said, which ends what hangs, also on a slow machine
#   [PROPERTIES <name> <value>...]   of every ctest test, for example RUN_SERIAL ON
#   [OPTIMISED]                 its own code computes for seconds
#   [TOGETHER <count>]          under sanitizers, where a start costs more than most tests, so many TEST_CASEs are one ctest test,
#                               but for those with the tag [alone], which take seconds: for those that neither wait nor
#                               have processes
#   [OWN_MAIN | DRIVER])        the sources have a main of their own; the tests call troupe::init
# The tags [timing] (its outcome hangs on how fast the machine is, or on what else runs there: it runs alone, after the
# others) and [extended] (CI leaves it out when it is late) become labels of the TEST_CASE. Left out under sanitizers are
# [timing], since they change what it takes, [quality] (how good the results of a search are, by arithmetic of many
# seconds), [browser] and [readers] (a browser, or a library of Python, judges what was written): other tests run each line
# of their code.
# The module (if there is one of that name) is linked, and its private headers are reached as in its own sources.
function(troupe_tests module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED;OWN_MAIN;DRIVER" "NAME;TIMEOUT;TOGETHER"
    "SOURCES;DEPENDENCIES;INTERNALS;LABELS;PROPERTIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "troupe_tests(${module}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME ${module})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()

  set(target test_${arg_NAME})
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${_troupe_test_support})
  troupe_compile_in_batches(${target} 8)
  _troupe_precompile_test(${target} ${module} "${arg_OPTIMISED}")
  if(TARGET troupe_${module})
    target_link_libraries(${target} PRIVATE troupe_${module})
    list(PREPEND arg_INTERNALS ${module})
  endif()
  troupe_use_internals(${target} ${arg_INTERNALS})
  if(arg_DRIVER)
    target_sources(${target} PRIVATE ${_troupe_test_support}/driver_main.cpp)
  endif()
  if(arg_OWN_MAIN OR arg_DRIVER)
    _troupe_test_runner()
    target_link_libraries(${target} PRIVATE ${arg_DEPENDENCIES} troupe_test_runner)
  else()
    target_link_libraries(${target} PRIVATE ${arg_DEPENDENCIES} Catch2::Catch2WithMain)
  endif()

  set(left_out "")
  set(together 1)
  if(TROUPE_SANITIZER)
    set(left_out "[quality],[timing],[browser],[readers]")
    if(arg_TOGETHER)
      set(together ${arg_TOGETHER})
    endif()
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT} ${arg_PROPERTIES})
  set(list_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_tests.cmake)
  add_custom_command(TARGET ${target} POST_BUILD
    BYPRODUCTS ${list_file}
    COMMAND ${CMAKE_COMMAND}
      "-DEXECUTABLE=$<TARGET_FILE:${target}>"
      -DPREFIX=${arg_NAME}
      "-DLABELS=${module};${arg_LABELS}"
      "-DPROPERTIES=${properties}"
      "-DLEFT_OUT=${left_out}"
      -DTOGETHER=${together}
      "-DENVIRONMENT=${_troupe_test_environment}"
      "-DOUTPUT=${list_file}"
      -P ${_troupe_discover_script}
    VERBATIM)
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
  file(CONFIGURE OUTPUT ${include_file} @ONLY CONTENT [[
if(EXISTS "@list_file@")
  include("@list_file@")
else()
  add_test("@target@ is built" "@target@_is_not_built")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
