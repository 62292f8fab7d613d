"""The traces that tests/traces keeps are what tests/programs/shapes does today, and say what it says of itself. Prints TAP."""

import lzma
import os
import subprocess
import sys

SHAPES = ["transformer", "convnet", "decode", "dataframe", "pipeline"]
TMP = os.environ["TEST_TMP"]


def events(lines):
    """All but the time of each line, and where what appears lies."""
    return [line.split()[1:5] for line in lines if not line.startswith("#")]


def peak(done):
    """The most bytes that were alive."""
    live = most = 0
    for operation, _, size, _ in done:
        live += int(size) if operation == "a" else -int(size)
        most = max(most, live)
    return most


def look(shape):
    """What is wrong with one trace; None for nothing."""
    path = f"{TMP}/{shape}.trace"
    env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"], "MEMSHIM_REPORT": "none",
           "MEMSHIM_TRACE": path}
    done = subprocess.run([os.environ["top_builddir"] + "/tests/programs/shapes", shape], env=env, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return done.stderr
    text = subprocess.run([os.environ["TEST_BIN"], "trace", "--text", path], capture_output=True, text=True, check=True).stdout
    recorded = events(text.splitlines())
    with lzma.open(f"{os.environ['top_srcdir']}/tests/traces/{shape}.trace.xz", "rt", encoding="ascii") as file:
        kept = events(file)
    said = dict(line.split() for line in done.stdout.splitlines())
    if len(recorded) != int(said["calls"]) or peak(recorded) != int(said["peak_live_bytes"]):
        return f"{len(recorded)} events with a peak of {peak(recorded)}, the program says {said}"
    return None if recorded == kept else "the program does something else than is kept: record it anew"


def main():
    """One fact for each shape."""
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP a sanitizer's library cannot be preloaded into a plain program")
        return
    print(f"1..{len(SHAPES)}")
    failed = False
    for number, shape in enumerate(SHAPES, 1):
        wrong = look(shape)
        failed |= wrong is not None
        print(f"{'ok' if wrong is None else 'not ok'} {number} - {shape}")
        if wrong:
            print("#", wrong)
    sys.exit(failed)


main()
