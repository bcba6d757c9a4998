# Installs all of TROUPE_BUILD as `./run install` does, with and without debug information, and configures, builds and runs
# PROJECT against that prefix. In: TROUPE_BUILD, PROJECT, PROMISED (what its program prints), SCRATCH, LAUNCHER, CXX, READELF,
# HAS_DEBUG_INFO (whether the build has any).
cmake_minimum_required(VERSION 3.24)
include(${CMAKE_CURRENT_LIST_DIR}/check_step.cmake)

# -> the installed libraries and programs that have a section .debug_info
function(list_debug_info prefix result)
  file(GLOB installed ${prefix}/lib/*.a ${prefix}/bin/*)
  if(installed STREQUAL "")
    message(FATAL_ERROR "nothing was installed into ${prefix}/lib and ${prefix}/bin")
  endif()
  set(found "")
  foreach(file IN LISTS installed)
    check_step("readelf" ${READELF} --section-headers --wide ${file})
    if(output MATCHES "\\.debug_info")
      list(APPEND found ${file})
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
check_step("install with debug information" ${CMAKE_COMMAND} --install ${TROUPE_BUILD} --prefix ${SCRATCH}/debug)
list_debug_info(${SCRATCH}/debug found)
if(HAS_DEBUG_INFO AND NOT found)
  message(FATAL_ERROR "nothing in ${SCRATCH}/debug has debug information, which was asked for")
endif()
file(REMOVE_RECURSE ${SCRATCH}/debug)

check_step("install" ${CMAKE_COMMAND} --install ${TROUPE_BUILD} --prefix ${SCRATCH}/prefix --strip)
list_debug_info(${SCRATCH}/prefix found)
if(found)
  message(FATAL_ERROR "these have debug information, for which nobody asked: ${found}")
endif()

check_step("troupe" ${SCRATCH}/prefix/bin/troupe --version)
foreach(text IN ITEMS man/man1/troupe.1 man/man1/troupe-run.1 man/man1/troupe-job-submit.1 bash-completion/completions/troupe zsh/site-functions/_troupe
                      fish/vendor_completions.d/troupe.fish)
  if(NOT EXISTS ${SCRATCH}/prefix/share/${text})
    message(FATAL_ERROR "share/${text} was not installed, which `troupe` writes of itself")
  endif()
endforeach()
check_step("configure" ${CMAKE_COMMAND} -S ${PROJECT} -B ${SCRATCH}/build -G Ninja -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
check_step("build" ${CMAKE_COMMAND} --build ${SCRATCH}/build)
check_step("run" ${SCRATCH}/build/my_program)
string(STRIP "${output}" output)
if(NOT output STREQUAL PROMISED)
  message(FATAL_ERROR "the program printed '${output}', not '${PROMISED}'")
endif()

file(WRITE ${SCRATCH}/wrong/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.24)\nproject(wrong LANGUAGES CXX)\nfind_package(troupe REQUIRED COMPONENTS tuner)\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SCRATCH}/wrong -B ${SCRATCH}/wrong/build -G Ninja
  -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DCMAKE_CXX_COMPILER=${CXX} OUTPUT_QUIET ERROR_VARIABLE output TIMEOUT 1400)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(NOT output MATCHES "has no component 'tuner'; it has collective, runtime")
  message(FATAL_ERROR "a component that is not there was not refused with those that are: ${output}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
