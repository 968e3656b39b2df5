"""How `Trajectory.error` compares with the true error on random models: `python -m tests.calibration`."""
