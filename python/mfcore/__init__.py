"""mfcore: the mean-field limit of two-layer neural networks, computable."""
