# Say in plain words what is missing, before CMake or the compiler says it in theirs. mfcore_find_compiler() comes before
# project(), mfcore_check_compiler() after it.

set(MFCORE_COMPILERS "GCC >= 12 or clang >= 13")

# Stop where there is no compiler at all. One that the user names, by CXX or a toolchain file, is for CMake to judge.
function(mfcore_find_compiler)
  if(CMAKE_CXX_COMPILER OR CMAKE_TOOLCHAIN_FILE OR NOT "$ENV{CXX}" STREQUAL "")
    return()
  endif()
  find_program(found NAMES c++ g++ clang++ NO_CACHE)
  if(NOT found)
    message(FATAL_ERROR "mfcore compiles its core, and there is no C++ compiler (c++, g++ or clang++) on PATH. "
      "Install ${MFCORE_COMPILERS}: `apt install g++` (Debian, Ubuntu), `dnf install gcc-c++` (Fedora), "
      "`xcode-select --install` (macOS), `conda install cxx-compiler` (conda); or name one by the environment variable CXX.")
  endif()
endfunction()

# Stop where the compiler is too old. GCC 11 lacks __builtin_shufflevector; clang 13 is the oldest that we have tried.
function(mfcore_check_compiler)
  set(oldest_GNU 12)
  set(oldest_Clang 13)
  set(oldest ${oldest_${CMAKE_CXX_COMPILER_ID}})
  if(MSVC OR oldest AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
    message(FATAL_ERROR "mfcore needs the vector extensions of ${MFCORE_COMPILERS}; ${CMAKE_CXX_COMPILER} is "
      "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. Name a newer one by the environment variable CXX, and "
      "remove the build folder of this one.")
  endif()
endfunction()
