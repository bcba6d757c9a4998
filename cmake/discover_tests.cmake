cmake_minimum_required(VERSION 3.24)

# Run after a test executable was linked: asks it for its TEST_CASEs and writes a ctest test for each, or for TOGETHER of them.
# In: EXECUTABLE, PREFIX of the ctest names, LABELS, PROPERTIES, ENVIRONMENT, OUTPUT, LEFT_OUT (tags with commas between them, or empty),
# TOGETHER.

# list_names(<variable> [<tag>]): the names of the TEST_CASEs that have this tag. What means something inside a list of
# CMake stands aside meanwhile.
string(ASCII 1 semicolon)
string(ASCII 2 opening)
string(ASCII 3 closing)
function(list_names variable)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ${EXECUTABLE} --list-test-names-only ${ARGN}
    OUTPUT_VARIABLE names ERROR_VARIABLE errors RESULT_VARIABLE said TIMEOUT 300)
  string(REPLACE ";" "${semicolon}" names "${names}")
  string(REPLACE "[" "${opening}" names "${names}")
  string(REPLACE "]" "${closing}" names "${names}")
  string(REGEX REPLACE "[\r\n]+" ";" names "${names}")
  list(REMOVE_ITEM names "")
  # Catch2 ends with the number of tests, 255 at most. A list that was cut short must not count as whole.
  list(LENGTH names count)
  if(count GREATER 255)
    set(count 255)
  endif()
  if(NOT "${said}" STREQUAL "${count}" OR (count EQUAL 0 AND NOT ARGN))
    message(FATAL_ERROR "${EXECUTABLE} lists ${count} tests (${ARGN}), and ended with ${said}: ${errors}")
  endif()
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()

list_names(names)
list_names(timing "[timing]")
list_names(extended "[extended]")
list_names(alone "[alone]")
if(LEFT_OUT)
  list_names(left_out "${LEFT_OUT}")
  list(REMOVE_ITEM names "" ${left_out})
endif()

list(REMOVE_ITEM LABELS "")
if(NOT TOGETHER)
  set(TOGETHER 1)
endif()
set(script "")

# add_ctest(<name> <patterns> <labels> <properties>): of the TEST_CASEs that the patterns match, with commas between them.
function(add_ctest name patterns labels properties)
  # A name that matches nothing must not count as passed.
  string(APPEND script
    "add_test([==[${PREFIX}: ${name}]==] [==[${EXECUTABLE}]==] [==[${patterns}]==] --warn NoTests)\n"
    "set_tests_properties([==[${PREFIX}: ${name}]==] PROPERTIES ENVIRONMENT [==[${ENVIRONMENT}]==] "
    "LABELS [==[${labels}]==]")
  foreach(property IN LISTS properties)
    string(APPEND script " [==[${property}]==]")
  endforeach()
  string(APPEND script ")\n")
  set(script "${script}" PARENT_SCOPE)
endfunction()

set(gathered "")  # patterns of TEST_CASEs that wait for their ctest test
set(in_gathered 0)
set(numbered 0)
macro(add_gathered)
  if(in_gathered GREATER 0)
    math(EXPR first "${numbered} - ${in_gathered} + 1")
    add_ctest("tests ${first} to ${numbered}" "${gathered}" "${LABELS}" "${PROPERTIES}")
  endif()
  set(gathered "")
  set(in_gathered 0)
endmacro()

foreach(name IN LISTS names)
  set(labels ${LABELS})
  set(properties ${PROPERTIES})
  if(name IN_LIST timing)
    list(APPEND labels timing)
    list(APPEND properties RUN_SERIAL ON)  # which ctest begins when all others have ended
  endif()
  if(name IN_LIST extended)
    list(APPEND labels extended)
  endif()
  set(is_alone FALSE)
  # One with a label of its own is a ctest test by itself.
  if(TOGETHER EQUAL 1 OR name IN_LIST alone OR NOT "${labels}" STREQUAL "${LABELS}")
    set(is_alone TRUE)
  endif()
  string(REPLACE "${semicolon}" ";" name "${name}")
  string(REPLACE "${opening}" "[" name "${name}")
  string(REPLACE "${closing}" "]" name "${name}")
  string(STRIP "${name}" name)
  string(REGEX REPLACE [[([\\,*"[]|])]] [[\\\1]] pattern "${name}")
  if(is_alone)
    add_ctest("${name}" "${pattern}" "${labels}" "${properties}")
    continue()
  endif()
  if(in_gathered GREATER 0)
    string(APPEND gathered ",")
  endif()
  string(APPEND gathered "${pattern}")
  math(EXPR in_gathered "${in_gathered} + 1")
  math(EXPR numbered "${numbered} + 1")
  if(in_gathered EQUAL TOGETHER)
    add_gathered()
  endif()
endforeach()
add_gathered()
file(WRITE ${OUTPUT} "${script}")
