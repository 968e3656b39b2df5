option(MFCORE_WERROR "Treat warnings as errors" OFF)

function(mfcore_set_warnings target)
  if(NOT DEFINED SKBUILD) # pip shows none, and looking for them takes a twentieth of its build
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
  endif()
  # Vectors cross only inlined functions, so the ABI note does not apply. Clang does not know the name.
  target_compile_options(${target} PRIVATE -Wno-psabi)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized) # false with AVX-512, GCC bug 105593
  endif()
  if(MFCORE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
