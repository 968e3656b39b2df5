"""Tools of every room: checks of arguments, seeds, files, the registry of configurable classes.

- `check`: every refusal of an argument, as a message that names argument, rule and value
- `places`: save points and the like, as a list or as a number of even ones
- `course`: temperatures and ridges that are functions of time
- `aside`: Ctrl-C is answered while another library computes; `factors`: eigenvalues of large matrices, so
- `rng`: from what users pass as `rng` to the 64-bit seeds that address random numbers
- `files`: files that appear whole or not at all
- `registry`: objects to plain tables and back, for configuration files and archives
- `described`, `archive`: objects and arrays to bytes in files and back; damage is told
- `free_memory`: how much a request may ask for; `limits`: what ends a run early; `bar`: its progress
- `keywords`: a misspelt keyword is answered with the closest name; `warn`: warnings about the user's line
- `lengths`: lengths of rows whose squares may leave the range of numbers
- `output`: arrays of the caller that are written; `turn`: one caller at a time
- `build`: what is in this installation

May use the compiled core and nothing else of mfcore. Add here only what at least two rooms need.
"""
