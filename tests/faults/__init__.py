"""Attacks with injected faults (kills, signals, damaged files, full disks, …): `python -m tests.faults
--minutes 60`.
"""
