# Eigen's headers come from the Python build requirement cmeel-eigen; a build without it may name its own copy with
# -DMFCORE_EIGEN_INCLUDE_DIR=... or have it where find_package looks.
if(NOT MFCORE_EIGEN_INCLUDE_DIR)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "from importlib.metadata import distribution; print(distribution('cmeel-eigen').locate_file('cmeel.prefix'), end='')"
    OUTPUT_VARIABLE cmeel_prefix ERROR_QUIET)
  if(cmeel_prefix)
    list(APPEND CMAKE_PREFIX_PATH ${cmeel_prefix})
  endif()
  find_package(Eigen3 3.4 REQUIRED NO_MODULE)
  get_target_property(MFCORE_EIGEN_INCLUDE_DIR Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
endif()
