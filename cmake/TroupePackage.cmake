# find_package(troupe COMPONENTS runtime|collective|train|tune), from an install prefix and from this build tree
# (-Dtroupe_DIR=<build folder>).

include(CMakePackageConfigHelpers)

set(package_dir ${PROJECT_BINARY_DIR})
get_property(components GLOBAL PROPERTY TROUPE_COMPONENTS)
list(REMOVE_DUPLICATES components)
foreach(component IN LISTS components)
  install(EXPORT troupe_${component} FILE troupe_${component}Targets.cmake NAMESPACE troupe::
    DESTINATION ${TROUPE_CMAKE_INSTALL_DIR} COMPONENT ${component})
  export(EXPORT troupe_${component} FILE ${package_dir}/troupe_${component}Targets.cmake NAMESPACE troupe::)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/troupeConfig.cmake.in ${package_dir}/troupeConfig.cmake
  INSTALL_DESTINATION ${TROUPE_CMAKE_INSTALL_DIR})
write_basic_package_version_file(${package_dir}/troupeConfigVersion.cmake COMPATIBILITY SameMinorVersion)

set(package_files
  ${CMAKE_CURRENT_LIST_DIR}/TroupeDependencies.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TroupeWheels.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindNcclRuntime.cmake
  ${CMAKE_CURRENT_LIST_DIR}/setup/wheels.txt)
file(COPY ${package_files} DESTINATION ${package_dir})
install(FILES ${package_files} ${package_dir}/troupeConfig.cmake ${package_dir}/troupeConfigVersion.cmake
  DESTINATION ${TROUPE_CMAKE_INSTALL_DIR} COMPONENT runtime)
