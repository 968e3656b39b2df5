# Headers of others (Eigen, pybind11) are copied into the build folder, where their paths stay the same: pip builds in
# a new throw-away environment each time, and ninja compiles anew whatever has another command line or has lost a file.

# mfcore_keep(FOLDER NAME RESULT) copies FOLDER once; NAME carries its version. RESULT is where it is now.
function(mfcore_keep folder name result)
  set(kept ${PROJECT_BINARY_DIR}/headers/${name})
  if(NOT EXISTS ${kept})
    file(REMOVE_RECURSE ${kept}.partial)
    file(COPY ${folder}/ DESTINATION ${kept}.partial PATTERN __pycache__ EXCLUDE)
    file(RENAME ${kept}.partial ${kept}) # an interrupted copy is none
  endif()
  set(${result} ${kept} PARENT_SCOPE)
endfunction()

# mfcore_python(RESULT CODE) asks the interpreter, each time anew: a cached answer would point into the environment of
# an earlier isolated build. RESULT is empty where it cannot say.
function(mfcore_python result code)
  set(answer "")
  if(Python_Interpreter_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "${code}" OUTPUT_VARIABLE answer ERROR_QUIET)
  endif()
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

# mfcore_precompile(TARGET HEADER...) reads these headers once per target. Only where pip builds, or on request: elsewhere
# each file has to show that it includes what it uses.
function(mfcore_precompile target)
  if(DEFINED SKBUILD OR MFCORE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
