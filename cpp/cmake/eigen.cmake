# MFCORE_EIGEN_INCLUDE_DIR: Eigen's headers, from the Python build requirement cmeel-eigen; a build without it may
# name its own copy with -DMFCORE_EIGEN_INCLUDE_DIR=... or have it where find_package looks.
if(NOT MFCORE_EIGEN_INCLUDE_DIR)
  mfcore_python(eigen "
from importlib.metadata import distribution
d = distribution('cmeel-eigen')
print(d.version, d.locate_file('cmeel.prefix/include/eigen3'), sep=';', end='')")
  if(eigen)
    list(GET eigen 0 version)
    list(GET eigen 1 folder)
    mfcore_keep(${folder} eigen-${version} MFCORE_EIGEN_INCLUDE_DIR)
  else()
    find_package(Eigen3 3.4 REQUIRED NO_MODULE)
    get_target_property(MFCORE_EIGEN_INCLUDE_DIR Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  endif()
endif()
