# The CUDA runtime and NCCL for host code: CudaRuntime::cudart and Nccl::nccl. Needs no compiler of CUDA, and what was
# linked with them starts on a machine without a GPU, where every call answers with an error code.
#
# Searched in this order: CMAKE_PREFIX_PATH, the wheels of `./run setup` (which LibTorch's wheel was built against), an
# installed toolkit. Wheels have no unversioned library names, so libraries are linked by full path.

include(${CMAKE_CURRENT_LIST_DIR}/TroupeWheels.cmake)
include(FindPackageHandleStandardArgs)

set(_nccl_runtime_wheels "")
if(TROUPE_SITE_PACKAGES)
  set(_nccl_runtime_wheels ${TROUPE_SITE_PACKAGES}/nvidia/cu13 ${TROUPE_SITE_PACKAGES}/nvidia/nccl)
endif()
set(_nccl_runtime_toolkits $ENV{CUDA_HOME} /usr/local/cuda)

foreach(_nccl_runtime_place prefix wheels toolkits)
  if(_nccl_runtime_place STREQUAL "prefix")
    set(_nccl_runtime_how NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
  elseif(_nccl_runtime_${_nccl_runtime_place})
    set(_nccl_runtime_how PATHS ${_nccl_runtime_${_nccl_runtime_place}} NO_DEFAULT_PATH)
  else()
    continue()
  endif()
  find_path(CudaRuntime_INCLUDE_DIR cuda_runtime_api.h PATH_SUFFIXES include ${_nccl_runtime_how})
  find_library(CudaRuntime_LIBRARY NAMES libcudart.so.13 libcudart.so PATH_SUFFIXES lib lib64 ${_nccl_runtime_how})
  find_path(Nccl_INCLUDE_DIR nccl.h PATH_SUFFIXES include ${_nccl_runtime_how})
  find_library(Nccl_LIBRARY NAMES libnccl.so.2 PATH_SUFFIXES lib lib64 ${_nccl_runtime_how})
endforeach()
# A distribution's NCCL, last.
find_path(Nccl_INCLUDE_DIR nccl.h)
find_library(Nccl_LIBRARY NAMES libnccl.so.2)
mark_as_advanced(CudaRuntime_INCLUDE_DIR CudaRuntime_LIBRARY Nccl_INCLUDE_DIR Nccl_LIBRARY)

find_package_handle_standard_args(NcclRuntime
  REQUIRED_VARS CudaRuntime_LIBRARY CudaRuntime_INCLUDE_DIR Nccl_LIBRARY Nccl_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run ./run setup, or name a CUDA toolkit and NCCL in CMAKE_PREFIX_PATH")

if(NcclRuntime_FOUND AND NOT TARGET Nccl::nccl)
  add_library(CudaRuntime::cudart SHARED IMPORTED)
  set_target_properties(CudaRuntime::cudart PROPERTIES IMPORTED_LOCATION ${CudaRuntime_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CudaRuntime_INCLUDE_DIR})
  add_library(Nccl::nccl SHARED IMPORTED)
  set_target_properties(Nccl::nccl PROPERTIES IMPORTED_LOCATION ${Nccl_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Nccl_INCLUDE_DIR} INTERFACE_LINK_LIBRARIES CudaRuntime::cudart)
endif()
