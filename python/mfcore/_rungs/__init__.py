"""The rungs of the ladder at work: each advances one kind of dynamics on the common clock."""
