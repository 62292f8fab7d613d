"""What the Python tests of the hooks share: TAP, and the environment that puts memshim before a program."""
import os
import subprocess

TMP = os.environ["TEST_TMP"]
BUILD = os.environ["top_builddir"]
HERE = os.path.join(BUILD, "tests", "hooks")
MEMSHIM = os.environ["TEST_BIN"]
WATCHED = os.environ["TEST_SANITIZE"]  # by which sanitizers, if any: what runs many times slower makes less
# Each build makes random choices of its own, so that none repeats another's.
SEED = os.environ.get("TEST_SEED", "3" if "thread" in WATCHED else "2" if WATCHED else "1")
number = 0


def trace_lines(path):
    """The lines of a recorded trace, comments too; it is whole."""
    done = subprocess.run([MEMSHIM, "trace", "--text", path], env=native_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def plan(count):
    print("1..%d" % count)


def fact(passed, name, details=()):
    """One fact; the details are shown if it does not hold."""
    global number
    number += 1
    print("%s %d - %s" % ("ok" if passed else "not ok", number, name))
    if not passed:
        for line in list(details)[:30]:
            print("#   %s" % (line,))


def skip(name, reason):
    global number
    number += 1
    print("ok %d - %s # SKIP %s" % (number, name, reason))


def preload():
    """What LD_PRELOAD holds: with gcc's sanitizers, the sanitizer's library first; clang's are in the program."""
    said = subprocess.run(os.environ["TEST_CC"].split() + ["--version"], capture_output=True, text=True, check=True).stdout
    if "clang" in said:
        return os.environ["TEST_LIB"]
    for word, library in (("address", "libasan.so"), ("thread", "libtsan.so"), ("undefined", "libubsan.so")):
        if word in os.environ["TEST_SANITIZE"]:
            path = subprocess.run(os.environ["TEST_CC"].split() + ["-print-file-name=" + library], capture_output=True,
                                  text=True, check=True).stdout.strip()
            return path + ":" + os.environ["TEST_LIB"]
    return os.environ["TEST_LIB"]


def native_environment(**more):
    return dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"], **more)


def shim_environment(report, **more):
    return native_environment(**{"LD_PRELOAD": preload(), "MEMSHIM_MODE": "pool", "MEMSHIM_REPORT": report, **more})
