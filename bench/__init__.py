"""Benchmarks: ratios to other implementations, measured in one run and checked to agree first."""
