"""A program that holds memory by mistake, and what becomes of it: its own end, a kill, or no memory. For the *_holder.py clients; kit/holder.py judges what the reports say.

A program has a function `holds`, whose memory nobody gives back any more, and one, `gives_back`, that takes more and gives it back each time. The first argument names the end.
"""
import ctypes
import os
import signal
import sys

ROUNDS = 3
KEPT_BYTES = 4 << 20  # of each round
PASSING_BYTES = 8 << 20  # more, so that it would come first if it were blamed
TOO_MUCH_BYTES = 1 << 48


def forget(thing):
    """A reference more, which nobody has: what an extension module does by mistake."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def come_to_an_end(holds, gives_back, take):
    """Plays both, and ends as it was told: `take` asks for that many bytes, and what it raises ends the program."""
    for _ in range(ROUNDS):
        holds()
        gives_back()
    print("held", ROUNDS * KEPT_BYTES, flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif sys.argv[1] == "oom":
        take(TOO_MUCH_BYTES)
