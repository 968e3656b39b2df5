# mfcore_seal(TARGET LEVEL): the archive of a level becomes one object, in which only the names of this version and level
# are global. Templates of the standard library and of Eigen, which every archive has compiled for its own level, are local
# to it: the linker cannot hand those of one level to another, or to the program. So archives of several levels, and files
# without flags, link into one program that runs on the lowest level.
#
# It takes GNU's ld and objcopy, whatever compiles: llvm-objcopy keeps every name that a relocation uses.
set(MFCORE_SEALER "")
if(UNIX AND NOT APPLE)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -fuse-ld=bfd -Wl,--version OUTPUT_VARIABLE said ERROR_QUIET)
  if(said MATCHES "GNU ld")
    set(candidates ${CMAKE_OBJCOPY})
    if(NOT CMAKE_CROSSCOMPILING)
      list(APPEND candidates ${CMAKE_LIBRARY_ARCHITECTURE}-objcopy objcopy gobjcopy)
    endif()
    foreach(candidate IN LISTS candidates)
      execute_process(COMMAND ${candidate} --version OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
      if(said MATCHES "^GNU objcopy" AND NOT failed) # the other says: llvm-objcopy, compatible with GNU objcopy
        set(MFCORE_SEALER ${candidate})
        break()
      endif()
    endforeach()
  endif()
endif()
# The linker would compile what link-time optimisation has left, and sanitizers keep lists by COMDAT groups. C++ tests
# include headers of the core itself, whose static variables would be defined twice.
set(MFCORE_SEALS OFF)
if(MFCORE_SEALER AND NOT (MFCORE_SANITIZE OR MFCORE_TESTS OR CMAKE_INTERPROCEDURAL_OPTIMIZATION))
  set(MFCORE_SEALS ON)
endif()
# The levels that programs with several of them, and the interface in C, choose from.
set(MFCORE_TOGETHER ${MFCORE_LEVELS})
if(NOT MFCORE_SEALS)
  set(MFCORE_TOGETHER ${MFCORE_DEFAULT_LEVEL})
  if(NOT MFCORE_SEALER)
    message(STATUS "No GNU ld and objcopy (Debian: binutils): archives are not sealed. The Python modules lose nothing; "
      "the interface in C and libmfcore hold ${MFCORE_TOGETHER} alone, and a C++ program must hold one level, not several")
  endif()
endif()

function(mfcore_seal target level)
  if(NOT MFCORE_SEALS)
    return()
  endif()
  set(own 6mfcore) # as it stands in mangled names
  foreach(name ${MFCORE_VERSIONED} ${level})
    string(LENGTH ${name} length)
    string(APPEND own ${length}${name})
  endforeach()
  set(kept "")
  foreach(kind ZN ZNK ZTVN ZTIN ZTSN ZZN ZZNK ZGVZN ZGVZNK) # functions, tables of classes, static variables
    list(APPEND kept --keep-global-symbol=_${kind}${own}*)
  endforeach()
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -fuse-ld=bfd -Wl,--force-group-allocation -o ${object}
      -Wl,--whole-archive $<TARGET_FILE:${target}> -Wl,--no-whole-archive
    # GCC's unique symbols are variables of functions in headers; objcopy makes weak symbols local, but not these.
    COMMAND ${MFCORE_SEALER} --wildcard --weaken-symbol=!_Z*${own}* --weaken-symbol=_Z* ${object}
    COMMAND ${MFCORE_SEALER} --wildcard --discard-all ${kept} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm $<TARGET_FILE:${target}>
    COMMAND ${CMAKE_AR} qcs $<TARGET_FILE:${target}> ${object}
    COMMAND ${CMAKE_COMMAND} -E rm ${object}
    VERBATIM)
endfunction()
