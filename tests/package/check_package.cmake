# Configures, builds and runs CONSUMER in SCRATCH against the build tree TROUPE_BUILD, or against a prefix that COMPONENT and
# what lies below it were installed into. In: ORIGIN, COMPONENT, TROUPE_BUILD, CONSUMER, SCRATCH, LAUNCHER, CXX.
cmake_minimum_required(VERSION 3.24)

function(check_step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 240)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
set(where -Dtroupe_DIR=${TROUPE_BUILD})
if(ORIGIN STREQUAL "install_prefix")
  foreach(component runtime ${COMPONENT})
    check_step("install" ${CMAKE_COMMAND} --install ${TROUPE_BUILD} --prefix ${SCRATCH}/prefix --component ${component})
  endforeach()
  set(where -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix)
endif()

check_step("configure" ${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/build -G Ninja ${where} -DCOMPONENT=${COMPONENT}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
file(STRINGS ${SCRATCH}/build/CMakeCache.txt met REGEX "LibTorch|CudaRuntime|Nccl")
if(met AND NOT COMPONENT STREQUAL "train")
  message(FATAL_ERROR "a user of ${COMPONENT} met LibTorch or CUDA:\n${met}")
endif()
check_step("build" ${CMAKE_COMMAND} --build ${SCRATCH}/build)
check_step("run" ${SCRATCH}/build/consumer)
if(NOT output MATCHES "consumer: it works")
  message(FATAL_ERROR "the program ran, but said:\n${output}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
