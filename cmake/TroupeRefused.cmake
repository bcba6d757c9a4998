# What the compiler must refuse, and in which words.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# troupe_refused(
#   HEADER <header>         whose misuse it is, as it stands in an #include
#   INCLUDE <folders>...
#   LABELS <labels>...)
# A ctest test of all sources in the folder `refused`; tests/compilers/check_refused.py says what their first lines mean. They
# make no program in which a sanitizer could find something, so sanitized builds have none.
function(troupe_refused)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "HEADER" "INCLUDE;LABELS")
  if(TROUPE_SANITIZER)
    return()
  endif()
  set(test "the compiler refuses misuse of ${arg_HEADER} in the words of the header")
  add_test(NAME "${test}"
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tests/compilers/check_refused.py ${CMAKE_CXX_COMPILER}
      ${CMAKE_CURRENT_SOURCE_DIR}/refused --root ${PROJECT_SOURCE_DIR} --scratch ${CMAKE_CURRENT_BINARY_DIR}
      --header ${arg_HEADER} --include ${arg_INCLUDE})
  # Only the tests of tests/compilers take longer, so it begins right after them.
  set_tests_properties("${test}" PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 1200 COST 90)
endfunction()
