"""Fixtures and options that all tests share."""

import signal

from hypothesis import settings

# No test depends on the clock, as on a busy machine, and each draws the same examples every time.
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")

# A shell that starts the tests in the background has SIGINT ignored, and so would all processes that they
# start and send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
