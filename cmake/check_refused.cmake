# Compiles one file of a folder `refused` and checks what the compiler says against the file's first line:
#   // refused: TEXT        it must not compile, and its only error must be "static assertion failed: troupe: TEXT..."
#   // refused first: TEXT  the same, but the compiler may add others behind that error
#   // refused second: TEXT  the same, behind one error in the compiler's own words
#   // compiles: ...        it must
# cmake -DCOMPILER=g++ -DINCLUDE=DIR[;DIR] -DSOURCE=FILE -P check_refused.cmake
file(STRINGS ${SOURCE} first LIMIT_COUNT 1)
set(flags "")
foreach(directory IN LISTS INCLUDE)
  list(APPEND flags -I${directory})
endforeach()
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only ${flags} ${SOURCE} RESULT_VARIABLE failed ERROR_VARIABLE said)

if(first MATCHES "^// compiles")
  if(failed)
    message(FATAL_ERROR "${SOURCE} does not compile:\n${said}")
  endif()
elseif(first MATCHES "^// refused( first| second)?: (.+)$")
  set(place "${CMAKE_MATCH_1}")
  set(expected "static assertion failed: troupe: ${CMAKE_MATCH_2}")
  string(FIND "${said}" "${expected}" at)
  if(NOT failed)
    message(FATAL_ERROR "${SOURCE} compiles, but should be refused with '${expected}'")
  elseif(at EQUAL -1)
    message(FATAL_ERROR "${SOURCE} is refused without '${expected}':\n${said}")
  endif()
  string(REGEX MATCHALL " error: [^\n;]*" errors "${said}")  # a semicolon would begin another
  list(LENGTH errors count)
  set(ours 0)
  if(place STREQUAL " second")
    set(ours 1)
  endif()
  list(GET errors ${ours} found)
  string(REGEX REPLACE ";.*" "" beginning " error: ${expected}")
  string(FIND "${found}" "${beginning}" at)
  math(EXPR allowed "${ours} + 1")
  if(NOT at EQUAL 0)
    message(FATAL_ERROR "${SOURCE} is refused with another error in the place of '${expected}':\n${said}")
  elseif(count GREATER allowed AND NOT place STREQUAL " first")
    message(FATAL_ERROR "${SOURCE} is refused with ${count} errors, not with '${expected}' alone:\n${said}")
  endif()
else()
  message(FATAL_ERROR "${SOURCE} does not begin with '// refused: TEXT' or '// compiles'")
endif()
