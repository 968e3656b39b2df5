# One archive and one Python module per instruction-set level, each compiled and linked alone: of two levels in one
# link the linker would pick, say, the AVX-512 copy of an inline function for a caller on a baseline machine. What keeps
# archives that are linked together apart is in seal.cmake.
set(MFCORE_ISA "auto" CACHE STRING
  "auto (the best level of this machine), all, or some of v2 v3 v4 generic native (native does not travel)")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(every_level v2 v3 v4)
else()
  set(every_level generic)
endif()
if(MFCORE_ISA STREQUAL "auto" AND CMAKE_CROSSCOMPILING)
  set(MFCORE_LEVELS ${every_level}) # which machine it will be cannot be asked
elseif(MFCORE_ISA STREQUAL "auto")
  try_run(ran compiled ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_LIST_DIR}/best_level.cpp
    RUN_OUTPUT_VARIABLE best COMPILE_OUTPUT_VARIABLE said)
  if(NOT compiled OR NOT ran EQUAL 0)
    message(FATAL_ERROR "The compiler cannot build and run cpp/cmake/best_level.cpp:\n${said}")
  endif()
  string(STRIP "${best}" MFCORE_LEVELS)
elseif(MFCORE_ISA STREQUAL "all")
  set(MFCORE_LEVELS ${every_level})
else()
  set(MFCORE_LEVELS ${MFCORE_ISA})
endif()
set(in_order v2 v3 v4 generic native) # the best one last, as in _loader.py
foreach(level IN LISTS in_order)
  if(level IN_LIST MFCORE_LEVELS)
    list(REMOVE_ITEM MFCORE_LEVELS ${level})
    list(APPEND MFCORE_LEVELS ${level})
  endif()
endforeach()
list(GET MFCORE_LEVELS 0 MFCORE_DEFAULT_LEVEL) # runs wherever the others run
message(STATUS "Instruction-set levels (MFCORE_ISA=${MFCORE_ISA}): ${MFCORE_LEVELS}")

function(mfcore_set_isa target level)
  if(level STREQUAL "native")
    target_compile_options(${target} PRIVATE -march=native)
  elseif(level MATCHES "^v[234]$")
    target_compile_options(${target} PRIVATE -march=x86-64-${level})
  elseif(NOT level STREQUAL "generic")
    message(FATAL_ERROR "MFCORE_ISA must be auto, all, or some of v2, v3, v4, generic, native, got '${level}'")
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
