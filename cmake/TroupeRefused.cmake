# What the compiler must refuse, and in which words.

set(_troupe_check_refused ${CMAKE_CURRENT_LIST_DIR}/check_refused.cmake)

# troupe_refused(<name>
#   HEADER <header>         which most sources include first, as it stands in their #include: g++ parses it once for all of them
#   INCLUDE <folders>...
#   LABELS <labels>...
#   SOURCES <sources>...)   relative to the folder `refused`; check_refused.cmake says what their first lines mean
# A ctest test for each source. They make no program in which a sanitizer could find something, so sanitized builds have none.
function(troupe_refused name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER" "INCLUDE;LABELS;SOURCES")
  if(TROUPE_SANITIZER)
    return()
  endif()
  set(parsed ${CMAKE_CURRENT_BINARY_DIR}/parsed)
  cmake_path(GET arg_HEADER PARENT_PATH folder)
  file(MAKE_DIRECTORY ${parsed}/${folder})
  list(TRANSFORM arg_INCLUDE PREPEND -I OUTPUT_VARIABLE flags)
  list(GET arg_INCLUDE 0 first)
  set(names "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(before "the compiler parses ${arg_HEADER}, for what it refuses")
    set(after "what the compiler has parsed of ${arg_HEADER} is removed")
    # This prepares and checks nothing: without its file the sources parse the header by themselves.
    add_test(NAME "${before}" COMMAND sh -c "rm -f \"$0\"; \"$@\" -o \"$0\" || rm -f \"$0\"" ${parsed}/${arg_HEADER}.gch
      ${CMAKE_CXX_COMPILER} -std=c++20 -w ${flags} -x c++-header ${first}/${arg_HEADER})
    add_test(NAME "${after}" COMMAND ${CMAKE_COMMAND} -E rm -f ${parsed}/${arg_HEADER}.gch)
    set_tests_properties("${before}" PROPERTIES FIXTURES_SETUP ${name})
    set_tests_properties("${after}" PROPERTIES FIXTURES_CLEANUP ${name})
    set(names "${before}" "${after}")
  endif()
  foreach(source IN LISTS arg_SOURCES)
    set(test "the compiler on ${name}/${source}")
    # g++ looks for HEADER.gch in each folder first.
    add_test(NAME "${test}"
      COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER} "-DINCLUDE=${parsed};${arg_INCLUDE}"
        -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/refused/${source} -P ${_troupe_check_refused})
    set_tests_properties("${test}" PROPERTIES FIXTURES_REQUIRED ${name})
    list(APPEND names "${test}")
  endforeach()
  set_tests_properties(${names} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
endfunction()
