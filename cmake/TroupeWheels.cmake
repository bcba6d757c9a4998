# Where `./run setup` put the wheels of LibTorch, the CUDA runtime and NCCL: <cache>/troupe/venv-<hash of the pins>,
# with "-gpu" behind it where the libraries of a GPU machine are in it too. Sets TROUPE_SITE_PACKAGES, empty where
# there is none.

if(NOT DEFINED TROUPE_SITE_PACKAGES)
  set(_troupe_venvs "")
  if(TROUPE_VENV)
    list(APPEND _troupe_venvs "${TROUPE_VENV}")
  else()
    if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
      set(_troupe_cache "$ENV{XDG_CACHE_HOME}/troupe")
    else()
      set(_troupe_cache "$ENV{HOME}/.cache/troupe")
    endif()
    foreach(_troupe_pins ${CMAKE_CURRENT_LIST_DIR}/setup/wheels.txt ${CMAKE_CURRENT_LIST_DIR}/wheels.txt)
      if(EXISTS ${_troupe_pins})
        file(SHA256 ${_troupe_pins} _troupe_hash)
        string(SUBSTRING ${_troupe_hash} 0 12 _troupe_hash)
        list(APPEND _troupe_venvs ${_troupe_cache}/venv-${_troupe_hash}-gpu ${_troupe_cache}/venv-${_troupe_hash})
      endif()
    endforeach()
  endif()

  set(TROUPE_SITE_PACKAGES "")
  foreach(_troupe_venv IN LISTS _troupe_venvs)
    file(GLOB _troupe_found LIST_DIRECTORIES true "${_troupe_venv}/lib/python3*/site-packages")
    if(_troupe_found)
      list(GET _troupe_found 0 TROUPE_SITE_PACKAGES)
      break()
    endif()
  endforeach()

  # Found libraries are kept in the cache; other wheels make them stale.
  if(DEFINED CACHE{TROUPE_LAST_SITE_PACKAGES}
     AND NOT "$CACHE{TROUPE_LAST_SITE_PACKAGES}" STREQUAL "${TROUPE_SITE_PACKAGES}")
    foreach(_troupe_entry LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR CudaRuntime_INCLUDE_DIR
            CudaRuntime_LIBRARY Nccl_INCLUDE_DIR Nccl_LIBRARY)
      unset(${_troupe_entry} CACHE)
    endforeach()
  endif()
  set(TROUPE_LAST_SITE_PACKAGES "${TROUPE_SITE_PACKAGES}" CACHE INTERNAL "")
endif()
