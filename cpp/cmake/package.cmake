# What embedders need, installed inside the wheel: headers, one archive per level, a CMake package.
include(CMakePackageConfigHelpers)
if(DEFINED SKBUILD)
  set(root mfcore/)
endif()
foreach(level IN LISTS MFCORE_LEVELS)
  list(APPEND archives mfcore_${level})
endforeach()
install(DIRECTORY cpp/include/mfcore DESTINATION ${root}include)
install(TARGETS ${archives} ARCHIVE DESTINATION ${root}lib)
configure_file(cpp/cmake/mfcoreConfig.cmake.in mfcoreConfig.cmake @ONLY) # finds its files relative to itself
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/mfcoreConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mfcoreConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/mfcoreConfigVersion.cmake
  DESTINATION ${root}cmake)
