# The libraries that each component stands on: for this tree, and in the installed package for whoever uses a component.

# troupe::capnp is CapnProto::capnp, for programs as archives where these are installed: each message goes through it, and
# a worker process, which is a fork, pays for every library that is mapped. What is itself a shared library stays with the
# shared ones: archives are not made for it.
function(_troupe_define_capnp)
  if(TARGET troupe::capnp)
    return()
  endif()
  add_library(troupe::capnp INTERFACE IMPORTED)
  set_target_properties(troupe::capnp PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES $<TARGET_PROPERTY:CapnProto::capnp,INTERFACE_INCLUDE_DIRECTORIES>
    INTERFACE_LINK_LIBRARIES CapnProto::capnp)
  get_target_property(shared CapnProto::capnp LOCATION)
  get_filename_component(folder "${shared}" DIRECTORY)
  if(EXISTS "${folder}/libcapnp.a" AND EXISTS "${folder}/libkj.a")
    set(archives "${folder}/libcapnp.a;${folder}/libkj.a")
    set_target_properties(troupe::capnp PROPERTIES INTERFACE_LINK_LIBRARIES
      "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,${archives},CapnProto::capnp>")
  endif()
endfunction()

macro(troupe_find_dependencies component)
  if("${component}" STREQUAL "runtime")
    find_package(Threads REQUIRED)
    find_package(Boost 1.81 REQUIRED CONFIG)
    find_package(CapnProto REQUIRED)  # looks for libatomic with a C compiler
    _troupe_define_capnp()
    find_package(cereal REQUIRED)
    find_package(spdlog REQUIRED)
    find_package(fmt REQUIRED)
    find_package(nlohmann_json REQUIRED)
    find_package(OpenSSL REQUIRED)
    find_package(SQLite3 REQUIRED)
  elseif("${component}" STREQUAL "train")
    find_package(LibTorch REQUIRED)
    find_package(NcclRuntime REQUIRED)
  elseif("${component}" STREQUAL "tune")
    find_package(Eigen3 REQUIRED NO_MODULE)
    find_package(nlohmann_json REQUIRED)
  endif()
endmacro()
