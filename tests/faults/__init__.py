"""Every fault we can think of, on purpose: `python -m tests.faults --minutes 60`."""
