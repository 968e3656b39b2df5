# Of the same name as a file of mfcore.
