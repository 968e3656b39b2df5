# Of the same name as a file of mfcore.
function(outer_warnings target)
  target_compile_options(${target} PRIVATE -Wall)
endfunction()
