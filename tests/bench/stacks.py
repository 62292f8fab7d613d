"""scripts/bench stacks: what a stack costs that was taken a moment ago. docs/internals/bench.md says what it measures."""

import os
import re
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/python"))
import interpreters  # noqa: E402  pylint: disable=wrong-import-position

PYTHON_FRAMES = 28


def output_of(options, command, **more):
    """What it prints; exits where it fails."""
    done = subprocess.run(command, env={**options.environment, **more}, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def row(way, interpreter, frames, ns, native):
    """One row; added_ns: above the same call where there is no interpreter."""
    return {"way": way, "interpreter": interpreter, "frames": frames, "ns": round(ns, 1),
            "added_ns": None if native is None else round(ns - native, 1)}


def native_rows(options):
    """tests/bench/stack: our walk and others', of 8, 16 and 64 frames."""
    lines = output_of(options, [os.path.join(options.build, "tests/bench/stack"), str(options.milliseconds)]).splitlines()
    rows = []
    for line in lines[1:]:
        cells = re.findall(r"(\d+) \( *\d+\)|(-)", line)
        rows += [row(way, None, int(line.split()[0]), float(ns), None)
                 for way, (ns, _) in zip(lines[0].split()[1:], cells) if ns]
    return rows


def python_rows(options):
    """Each interpreter that is here."""
    probe = os.path.join(options.build, "tests/python/probe.so")
    program = os.path.join(TOP, "tests/bench/python_stacks.py")
    rows = []
    for version in interpreters.VERSIONS:
        command = interpreters.find(version)
        if not command:
            continue
        taken = [[float(word) for word in output_of(options, [*command, program, probe, str(options.milliseconds)], LD_PRELOAD=probe).split()] for _ in range(options.rounds)]
        whole, native, detached, detached_native = (statistics.median(figures) for figures in zip(*taken))
        rows.append(row("python", version, PYTHON_FRAMES, whole, native))
        rows.append(row("python, detached", version, PYTHON_FRAMES, detached, detached_native))
    return rows


def bench_stacks(options):
    """A row for each way and depth."""
    return native_rows(options) + python_rows(options)
