"""Programs that are watched while they run (steps.c), and what their own books say."""
import os
import subprocess
import time

from hooklib import TMP, shim_environment

PROGRAM = os.path.join(os.environ["top_builddir"], "tests", "ledger", "steps")


def until(holds):
    """Whether it does at last: a wait that ends, not a time that is held."""
    for _ in range(600):
        if holds():
            return True
        time.sleep(0.1)
    return False


class Watched:
    """One that runs, with memshim in it; MEMSHIM_DIR is where the tests are."""
    def __init__(self, seed, words=(), **more):
        self.book = os.path.join(TMP, "book.%d" % seed)
        self.process = subprocess.Popen([PROGRAM, self.book, str(seed), *words], stdout=subprocess.PIPE, env=shim_environment("none", MEMSHIM_DIR=TMP, MEMSHIM_LOG="none", **more))
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def kill(self):
        """By SIGKILL, once."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def rows(self):
        """Of the book, whole ones."""
        with open(self.book, encoding="ascii") as file:
            return [tuple(map(int, line.split())) for line in file if line.endswith("\n")]

    def states(self, begin_ns, end_ns):
        """What was true at some time in between: (live, peak, count) each. A change is made between its two times, so what was before it holds up to the later one; the
        one that was being made is in the book a moment later. None: it was killed before that."""
        rows = self.rows()
        while rows[-1][0] <= end_ns:
            if self.process.poll() is not None:
                return None
            time.sleep(0.05)
            rows = self.rows()
        return {row[2:] for row, after in zip(rows, rows[1:]) if row[0] <= end_ns and after[1] >= begin_ns}

    def says(self, figures, begin_ns, end_ns, see=lambda live, peak, count: (live, peak, count)):
        """Whether these figures are in the book, as `see` has them."""
        states = self.states(begin_ns, end_ns)
        return states is None or figures in {see(*state) for state in states}
