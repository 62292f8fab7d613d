"""scripts/bench schedules: how many schedules, and steps of theirs, tests/schedules makes in a second. docs/internals/bench.md says how to read it."""

import os
import re
import subprocess
import sys

RULES = ("random", "pct", "weak")
FIRST = 20  # schedules from which it is told how many fill the time


def made(program, name, rule, count):
    """(schedules, steps, seconds) of so many; exits where one fails."""
    done = subprocess.run([program, name, rule, str(count)], capture_output=True, text=True, timeout=600, check=False)
    said = re.search(r": (\d+) schedules, (\d+) steps, ([0-9.]+) s: nothing$", done.stdout)
    if not said:
        sys.exit(f"{name} {rule}: " + (done.stdout + done.stderr).strip())
    return int(said.group(1)), int(said.group(2)), max(float(said.group(3)), 1e-4)


def row(program, name, rule, options):
    """One program by one rule: the median of the rounds."""
    schedules, _, seconds = made(program, name, rule, FIRST)
    count = max(FIRST, int(schedules / seconds * options.milliseconds / 1000))
    taken = [made(program, name, rule, count) for _ in range(options.rounds)]
    schedules, steps, seconds = sorted(taken, key=lambda figures: figures[0] / figures[2])[len(taken) // 2]
    return {"program": name, "rule": rule, "schedules_per_second": round(schedules / seconds), "steps_per_second": round(steps / seconds),
            "steps_per_schedule": round(steps / schedules, 1)}


def bench_schedules(options):
    """A row for each program, or those that are named, and rule."""
    program = os.path.join(options.build, "tests/schedules/schedules")
    said = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    listed = [line.split("\t")[0] for line in said.splitlines() if " wrong" not in line.split("\t")[0]]
    rows = []
    for words in (name.split() for name in listed):
        if not options.arguments or words[0] in options.arguments:
            rows += [row(program, words[0], rule, options) for rule in RULES if rule != "weak" or "reads-old" not in words]
    return rows
