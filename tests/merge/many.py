#!/usr/bin/env python3
"""Merges the reports of very many ranks, and says how long that took and how much memory.

Usage: many.py RANKS     run by scripts/test-merge

Writes RANKS made-up reports into a directory of its own below TMPDIR, one of them with a leak of its own, merges them on two processors, and
looks whether that one is named. Ends with 1 if it is not, after 60 seconds, or with more than 1 GiB in all processes together. Needs `build/memshim` (or
BUILD_DIR), and about 5 KB for each rank.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import made  # noqa: E402

SECONDS, BYTES = 60, 1 << 30


def tree_bytes(root):
    """What the processes below `root` and itself have in memory."""
    parents, total = {}, 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as file:
                words = file.read().rsplit(")", 1)[1].split()
            parents[int(name)] = (int(words[1]), int(words[21]) * os.sysconf("SC_PAGE_SIZE"))
        except OSError:
            continue
    for pid, (_, resident) in parents.items():
        at = pid
        while at in parents and at != root:
            at = parents[at][0]
        total += resident if at == root else 0
    return total


def watch(process, most):
    """Keeps the most that was ever in memory."""
    while process.poll() is None:
        most[0] = max(most[0], tree_bytes(process.pid))
        time.sleep(0.05)


def main():
    """See above."""
    ranks = int(sys.argv[1])
    memshim = os.path.join(os.path.abspath(os.environ.get("BUILD_DIR", os.path.join(TOP, "build"))), "memshim")
    with tempfile.TemporaryDirectory(prefix="memshim-many.") as place:
        paths = [os.path.join(place, "%d.json" % rank) for rank in range(ranks)]
        for rank, path in enumerate(paths):
            made.write(path, rank, ranks, ranks // 3)
        with open(os.path.join(place, "list"), "w", encoding="utf-8") as file:
            file.write("\n".join(paths) + "\n")
        job, most, begun = os.path.join(place, "job"), [0], time.monotonic()
        with subprocess.Popen([memshim, "merge", "--processes", "2", "--files-from", file.name, "-o", job], stdout=subprocess.PIPE, text=True) as process:
            watcher = threading.Thread(target=watch, args=(process, most))
            watcher.start()
            said = process.communicate()[0]
            watcher.join()
        seconds = time.monotonic() - begun
        most[0] = max(most[0], resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
        with open(job, encoding="utf-8") as file:
            out = json.load(file)["job"]["outliers"]
    print(said, end="")
    named = process.returncode == 0 and bool(out) and {row["rank"] for row in out} == {ranks // 3}
    print("%d ranks in %.1f s, %.0f MiB at most; the one that stands out is %snamed" % (ranks, seconds, most[0] / (1 << 20), "" if named else "not "))
    return 0 if named and seconds < SECONDS and most[0] < BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
