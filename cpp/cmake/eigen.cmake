# MFCORE_EIGEN_INCLUDE_DIR: Eigen's headers, from the Python build requirement cmeel-eigen; a build without it may
# name its own copy with -DMFCORE_EIGEN_INCLUDE_DIR=... or have it where find_package looks.
if(NOT MFCORE_EIGEN_INCLUDE_DIR)
  if(Python_Interpreter_FOUND)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c
        "from importlib.metadata import distribution; print(distribution('cmeel-eigen').locate_file('cmeel.prefix'), end='')"
      OUTPUT_VARIABLE cmeel_prefix ERROR_QUIET)
  endif()
  if(cmeel_prefix)
    # Asked anew each time: a cached answer would point into the environment of an earlier isolated build.
    set(Eigen3_DIR ${cmeel_prefix}/share/eigen3/cmake)
  endif()
  find_package(Eigen3 3.4 REQUIRED NO_MODULE)
  get_target_property(MFCORE_EIGEN_INCLUDE_DIR Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
endif()
