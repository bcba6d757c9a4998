# How everything is compiled: language, warnings, sanitizers, linker, compiler cache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # LibTorch is found by an absolute run path; LD_LIBRARY_PATH goes before it

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
endif()

# Assertions guard the state of a cluster, so they stay in every build type. Line tables are enough for a stack trace,
# and full debug information would triple what LibTorch's headers cost.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

if(TROUPE_CHECKS)
  add_compile_definitions(TROUPE_CHECKS=1)
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>)
if(TROUPE_WERROR)
  add_compile_options(-Werror)
endif()

# g++ looks for garbage each time its memory has grown by a third, which is a fifth of the time of a large source. From
# 1.5 GB on is early enough: a compiler needs 2 GB at most, as `./run` reckons with.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1500000>)
endif()

# A build is half as large with compressed line tables.
add_link_options(-Wl,--compress-debug-sections=zlib)

if(TROUPE_SANITIZER)
  add_compile_options(-fsanitize=${TROUPE_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TROUPE_SANITIZER})
  # What sanitizers know of each variable and each check is full of addresses. At a fixed address a program has them in its
  # file, and need not make millions of them at each start, each in a page of its own; it starts in half of the time.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  if(TROUPE_SANITIZER MATCHES "address" AND TROUPE_SANITIZER MATCHES "undefined")
    # A check that fails is an illegal instruction, which AddressSanitizer shows with its file, line and stack (handle_sigill=1
    # in cmake/TroupeTests.cmake). What UndefinedBehaviorSanitizer would say of each check beyond that is half of each program,
    # and a fifth of the time to compile it. Without it one check is not made: that of the type behind a pointer (vptr).
    add_compile_options(-fsanitize-undefined-trap-on-error)
  endif()
  if(TROUPE_SANITIZER STREQUAL "thread")
    # Boost.Asio's headers have fences, which this sanitizer does not follow; g++ would say so for each source.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()

# A compiler cache that all clones of one user share: paths are hashed, and written into debug information, as seen from
# the source folder.
find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # It looks into precompiled headers only if it may take them for what they were made of.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${TROUPE_CCACHE})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
endif()

find_program(TROUPE_MOLD mold)
if(TROUPE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
