# One archive and one Python module per instruction-set level, each compiled and linked alone: two levels in one
# link would let the linker pick, say, an AVX-512 copy of an inline function for a caller on a baseline machine.
set(MFCORE_ISA "all" CACHE STRING "all, or one of v2 v3 v4 generic native (native does not travel to other machines)")

if(NOT MFCORE_ISA STREQUAL "all")
  set(MFCORE_LEVELS ${MFCORE_ISA})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(MFCORE_LEVELS v2 v3 v4)
else()
  set(MFCORE_LEVELS generic)
endif()

function(mfcore_set_isa target level)
  if(level STREQUAL "native")
    target_compile_options(${target} PRIVATE -march=native)
  elseif(level MATCHES "^v[234]$")
    target_compile_options(${target} PRIVATE -march=x86-64-${level})
  elseif(NOT level STREQUAL "generic")
    message(FATAL_ERROR "MFCORE_ISA must be all, v2, v3, v4, generic or native, got '${level}'")
  endif()
  # No -ffast-math: it would flush subnormals for the whole process and remove isnan. Contraction to fused
  # multiply-adds is allowed; errno and traps are not used. v4: 512-bit vectors unless a bench says otherwise.
  target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math -ffp-contract=fast)
  if(level STREQUAL "v4")
    target_compile_options(${target} PRIVATE -mprefer-vector-width=512)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>)
  if(MFCORE_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${MFCORE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
    target_link_options(${target} PUBLIC -fsanitize=${MFCORE_SANITIZE})
  endif()
endfunction()
