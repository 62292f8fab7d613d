"""What the tests of tests/gpu share: TAP, and where things are."""
import os

BUILD, TMP, TOP = os.environ["top_builddir"], os.environ["TEST_TMP"], os.environ["top_srcdir"]
_told = [0]


def plan(count):
    """How many facts there will be."""
    print(f"1..{count}", flush=True)


def fact(holds, name, complaints=()):
    """One line of TAP, with complaints where it does not hold."""
    _told[0] += 1
    print(f"{'ok' if holds else 'not ok'} {_told[0]} - {name}", flush=True)
    for line in () if holds else complaints:
        print(f"# {line}", flush=True)


def skip(name, reason):
    """A fact that cannot be had here."""
    _told[0] += 1
    print(f"ok {_told[0]} - {name} # SKIP {reason}", flush=True)
