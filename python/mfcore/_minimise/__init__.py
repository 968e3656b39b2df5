"""Minimisers of the risk and of the free energy over all measures: what `gibbs` and `optimum` are made of."""
