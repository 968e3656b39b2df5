"""Fixtures and options that all tests share."""

import signal

# A shell that starts the tests in the background has SIGINT ignored, and so would all processes that they
# start and send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
