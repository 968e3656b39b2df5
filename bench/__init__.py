"""Benchmarks of mfcore against numpy, numba, JAX and torch, as ratios in one run after the results agree."""

from .run import main

__all__ = ["main"]
