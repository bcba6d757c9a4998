# LibTorch as three imported targets, without CUDA: LibTorch::c10, LibTorch::torch_cpu and LibTorch::LibTorch, which is
# both with their headers. torch_cuda is never linked: it pulls in gigabytes that a machine without a GPU does not have;
# a process that was given a GPU loads it at run time, from LibTorch_LIBRARY_DIR.
#
# Searched in this order: CMAKE_PREFIX_PATH and LibTorch_ROOT (an unpacked LibTorch, or <site-packages>/torch), then the
# wheels of `./run setup`. Result: LibTorch_FOUND, LibTorch_LIBRARY_DIR, LibTorch_VERSION.

include(${CMAKE_CURRENT_LIST_DIR}/TroupeWheels.cmake)
include(FindPackageHandleStandardArgs)

set(_libtorch_hints "")
if(TROUPE_SITE_PACKAGES)
  set(_libtorch_hints ${TROUPE_SITE_PACKAGES}/torch)
endif()

# Prefixes before hints, which find_* would search the other way round.
foreach(_libtorch_where "" "${_libtorch_hints}")
  if(_libtorch_where STREQUAL "")
    set(_libtorch_how NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
  else()
    set(_libtorch_how PATHS ${_libtorch_where} NO_DEFAULT_PATH)
  endif()
  find_library(LibTorch_torch_cpu_LIBRARY torch_cpu PATH_SUFFIXES lib ${_libtorch_how})
  find_library(LibTorch_c10_LIBRARY c10 PATH_SUFFIXES lib ${_libtorch_how})
  find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h PATH_SUFFIXES include ${_libtorch_how})
endforeach()
mark_as_advanced(LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR)

if(LibTorch_INCLUDE_DIR AND EXISTS ${LibTorch_INCLUDE_DIR}/torch/version.h)
  foreach(_libtorch_header torch/version.h torch/csrc/api/include/torch/version.h torch/headeronly/version.h)
    if(EXISTS ${LibTorch_INCLUDE_DIR}/${_libtorch_header})
      file(STRINGS ${LibTorch_INCLUDE_DIR}/${_libtorch_header} _libtorch_line REGEX "define TORCH_VERSION \"")
      if(_libtorch_line MATCHES "\"([0-9.]+)")
        set(LibTorch_VERSION ${CMAKE_MATCH_1})
      endif()
    endif()
  endforeach()
endif()

find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE
    "run ./run setup, or name a LibTorch in CMAKE_PREFIX_PATH, or leave train out with -DTROUPE_TRAIN=OFF")

if(LibTorch_FOUND)
  get_filename_component(LibTorch_LIBRARY_DIR ${LibTorch_torch_cpu_LIBRARY} DIRECTORY)
  # Its own run path names the wheels of CUDA beside it. A linker that follows libraries of libraries needs it said.
  file(GLOB _libtorch_link_dirs LIST_DIRECTORIES true ${LibTorch_LIBRARY_DIR}/../../nvidia/*/lib)
  list(TRANSFORM _libtorch_link_dirs PREPEND "-Wl,-rpath-link,")
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_c10_LIBRARY})
  add_library(LibTorch::torch_cpu SHARED IMPORTED)
  set_target_properties(LibTorch::torch_cpu PROPERTIES IMPORTED_LOCATION ${LibTorch_torch_cpu_LIBRARY}
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  # -idirafter: the wheel carries a fmt of its own, which must not hide the one that spdlog was built with.
  set_target_properties(LibTorch::LibTorch PROPERTIES
    INTERFACE_COMPILE_OPTIONS
      "SHELL:-idirafter ${LibTorch_INCLUDE_DIR};SHELL:-idirafter ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_OPTIONS "${_libtorch_link_dirs}"
    INTERFACE_LINK_LIBRARIES "LibTorch::torch_cpu;LibTorch::c10")
endif()
