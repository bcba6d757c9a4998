cmake_minimum_required(VERSION 3.24)

# Run after a test executable was linked: asks it for its TEST_CASEs and writes a ctest test for each.
# In: EXECUTABLE, PREFIX of the ctest names, LABELS, PROPERTIES, ENVIRONMENT, OUTPUT.

execute_process(
  COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ${EXECUTABLE} --list-test-names-only
  OUTPUT_VARIABLE names ERROR_VARIABLE errors RESULT_VARIABLE count TIMEOUT 60)
# Catch2's exit code is the number of tests (modulo 256), so it says nothing about success.
if("${names}" STREQUAL "")
  message(FATAL_ERROR "${EXECUTABLE} lists no tests (exit code ${count}): ${errors}")
endif()

# What means something inside a list of CMake stands aside while the lines are one.
string(ASCII 1 semicolon)
string(ASCII 2 opening)
string(ASCII 3 closing)
string(REPLACE ";" "${semicolon}" names "${names}")
string(REPLACE "[" "${opening}" names "${names}")
string(REPLACE "]" "${closing}" names "${names}")
string(REGEX REPLACE "[\r\n]+" ";" names "${names}")

list(REMOVE_ITEM LABELS "")
set(script "")
foreach(name IN LISTS names)
  string(REPLACE "${semicolon}" ";" name "${name}")
  string(REPLACE "${opening}" "[" name "${name}")
  string(REPLACE "${closing}" "]" name "${name}")
  string(STRIP "${name}" name)
  if(name STREQUAL "")
    continue()
  endif()
  string(REGEX REPLACE [[([\\,*"[]|])]] [[\\\1]] pattern "${name}")
  # A name that matches nothing must not count as passed.
  string(APPEND script
    "add_test([==[${PREFIX}: ${name}]==] [==[${EXECUTABLE}]==] [==[${pattern}]==] --warn NoTests)\n"
    "set_tests_properties([==[${PREFIX}: ${name}]==] PROPERTIES ENVIRONMENT [==[${ENVIRONMENT}]==] "
    "LABELS [==[${LABELS}]==]")
  foreach(property IN LISTS PROPERTIES)
    string(APPEND script " [==[${property}]==]")
  endforeach()
  string(APPEND script ")\n")
endforeach()
file(WRITE ${OUTPUT} "${script}")
