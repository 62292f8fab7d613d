"""Runs a test in Python where programs are emulated, and take ten times as long: what the test gives a program, in seconds, is ten times as
much. The programs themselves are left as they are. Called by run-test: patient.py TEST [ARGUMENTS...]"""
import os
import runpy
import subprocess
import sys

TIMES = 10


def patient(method, place):
    """The method of Popen with a longer `timeout`, which is its argument number `place`, or has that name."""
    def called(self, *arguments, **named):
        arguments = list(arguments)
        if len(arguments) > place and arguments[place] is not None:
            arguments[place] *= TIMES
        elif named.get("timeout") is not None:
            named["timeout"] *= TIMES
        return method(self, *arguments, **named)
    return called


# communicate() calls neither of them by name but wait(), with what is left of a time that is long already.
inner_wait = subprocess.Popen.wait
subprocess.Popen.wait = patient(inner_wait, 0)
inner_communicate = patient(subprocess.Popen.communicate, 1)


def communicate(self, *arguments, **named):
    self.wait = lambda timeout=None: inner_wait(self, timeout)
    try:
        return inner_communicate(self, *arguments, **named)
    finally:
        del self.wait


subprocess.Popen.communicate = communicate
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
