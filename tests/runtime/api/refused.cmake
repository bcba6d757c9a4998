# Compiles one file of refused/ and checks what the compiler says against the file's first line:
#   // refused: TEXT      it must not compile, and TEXT must stand in a "static assertion failed: troupe: ..."
#   // compiles: ...      it must
# cmake -DCOMPILER=g++ -DINCLUDE=DIR[;DIR] -DSOURCE=FILE -P refused.cmake
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
elseif(first MATCHES "^// refused: (.+)$")
  set(expected "static assertion failed: troupe: ${CMAKE_MATCH_1}")
  string(FIND "${said}" "${expected}" at)
  if(NOT failed)
    message(FATAL_ERROR "${SOURCE} compiles, but should be refused with '${expected}'")
  elseif(at EQUAL -1)
    message(FATAL_ERROR "${SOURCE} is refused without '${expected}':\n${said}")
  endif()
else()
  message(FATAL_ERROR "${SOURCE} does not begin with '// refused: TEXT' or '// compiles'")
endif()
