"""Final states of every rung as numbers, to show that a change of the code changes no bit of any result."""
