#!/usr/bin/env python3
"""memshim-merge-mpi: the 64 made-up ranks of merge.py by 64 MPI processes on one machine. The same bytes as memshim merge, by any number of processes, also more than
there are files; the rank that stands out is named with its line; what one process cannot read ends all of them with one line."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", "merge"), os.path.join(os.environ["top_srcdir"], "tests", "hooks")]
import made  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402
from openmpi import mpirun  # noqa: E402

MERGE = os.path.join(os.environ["top_builddir"], "memshim-merge-mpi")
RANKS, OUTLIER = 64, 37

def mpi(processes, *words):
    """memshim-merge-mpi by so many."""
    return mpirun(processes, MERGE, *words)


def bytes_of(path):
    """What is in a file, nothing if it is not there."""
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def main():
    """Its facts."""
    os.chdir(TMP)
    paths = ["r%d.json" % rank for rank in range(RANKS)]
    for rank, path in enumerate(paths):
        made.write(path, rank, RANKS, OUTLIER)
    done = subprocess.run([MEMSHIM, "merge", "-o", "tree.json", *paths], capture_output=True, text=True, timeout=120, check=True)
    whole = bytes_of("tree.json")
    with open("list", "w", encoding="utf-8") as file:
        file.write("\n".join(reversed(paths)) + "\n")
    status, said, error = mpi(RANKS, "-o", "mpi.json", "--files-from", "list")
    fact(status == 0 and not error and whole and bytes_of("mpi.json") == whole, "64 processes make the bytes that memshim merge makes", [status, error])
    fact(said == done.stdout and "rank 37 on node0004: leaked 48.0 MiB" in said and "by stray at /src/train.c:19 (cudaMalloc)" in said, "one rank stands out, by its line", [said])
    different = []
    for processes, files in ((1, paths), (5, paths), (6, paths[:2] + ["half.json"])):
        if len(files) == 3:
            subprocess.run([MEMSHIM, "merge", "-o", "half.json", *paths[2:]], capture_output=True, timeout=120, check=True)
        status, _, error = mpi(processes, "-f", "-o", "some.json", *files)
        if status or bytes_of("some.json") != whole:
            different.append((processes, status, error))
    fact(not different, "so do one, five, and more than there are files, job reports among them", different)
    refused = [("a file that is not there", [*paths[:3], "missing.json", *paths[3:]], "missing.json"), ("a process that comes twice", [*paths, paths[5]], "is in two of the reports"),
               ("no report", [], "no report given"), ("a list on standard input", ["--files-from", "-"], "--files-from '-'"), ("an unknown option", ["--tree"], "unknown option '--tree'")]
    for name, words, line in refused:
        status, said, error = mpi(4, "-o", "refused.json", *words)
        fact(status == 2 and not said and len(error) == 1 and line in error[0] and error[0].startswith("memshim-merge-mpi: ") and not os.path.exists("refused.json"),
             "%s is refused in one line" % name, [status, said, *error])
    plan(8)


if __name__ == "__main__":
    if not os.access(MERGE, os.X_OK):
        print("1..0 # SKIP memshim-merge-mpi is not built: no MPI (scripts/install-deps --mpi), a sanitizer, or no command")
    elif not shutil.which("mpirun"):
        print("1..0 # SKIP no mpirun")
    else:
        main()
