# Files for embedders, installed inside the wheel: headers, one archive per level, a CMake package and a file for
# pkg-config.
include(CMakePackageConfigHelpers)
if(DEFINED SKBUILD)
  set(root mfcore/)
endif()
foreach(level IN LISTS MFCORE_LEVELS)
  list(APPEND archives mfcore_${level})
endforeach()
install(DIRECTORY cpp/include/mfcore ${PROJECT_BINARY_DIR}/cpp/include/mfcore DESTINATION ${root}include)
# The formulas that headers cite, "eq. (1.6)", beside them.
install(FILES docs/mathematics.md DESTINATION ${root}include/mfcore)
install(DIRECTORY docs/mathematics DESTINATION ${root}include/mfcore)
install(TARGETS ${archives} mfcore_c ARCHIVE DESTINATION ${root}lib)
set(skip "")
if(DEFINED SKBUILD) # wheels have no symbolic links
  set(skip NAMELINK_SKIP)
endif()
install(TARGETS mfcore_shared LIBRARY DESTINATION ${root}lib ${skip})
set(MFCORE_SHARED libmfcore.so.0)
if(APPLE)
  set(MFCORE_SHARED libmfcore.0.dylib)
endif()
configure_file(cpp/cmake/mfcoreConfig.cmake.in mfcoreConfig.cmake @ONLY) # finds its files relative to itself
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/mfcoreConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mfcoreConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/mfcoreConfigVersion.cmake
  DESTINATION ${root}cmake)
# By the names of the OpenMP libraries: their paths are those of the machine that builds.
list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND -l OUTPUT_VARIABLE openmp)
list(JOIN openmp " " openmp)
set(runtime ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER runtime INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|m)$")
list(REMOVE_DUPLICATES runtime)
list(TRANSFORM runtime PREPEND -l)
list(JOIN runtime " " runtime)
list(TRANSFORM archives PREPEND -l)
list(JOIN archives " " archives)
foreach(name mfcore mfcore-c)
  configure_file(cpp/cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${root}lib/pkgconfig)
endforeach()
if(NOT DEFINED SKBUILD) # a wheel has them beside its metadata
  install(FILES LICENSE NOTICE licenses/MPL-2.0.txt DESTINATION share/licenses/mfcore)
endif()
