"""One-line mistakes that the tests must catch: `python -m tests.mutants`."""
