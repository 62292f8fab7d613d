#!/usr/bin/env python3
"""Reports whose parts are of other types than they should be: check, suppress, diff and merge end with a status of theirs, and never by a signal. Every TEST_DAMAGES-th
of some 2,000 damages (37 if not given; 1: all)."""
import copy
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", "merge"), os.path.join(os.environ["top_srcdir"], "tests", "hooks")]
import made  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402

STEP = int(os.environ.get("TEST_DAMAGES", "37"))
WRONGS = (None, -1, "x", [], {}, [[9, 9]], 1e300, 2 ** 62)


def paths(value, path=()):
    """The place of each part."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, path + (key,))


def damaged(whole, first):
    """Every STEP-th damage."""
    number = first
    for path in paths(whole):
        for wrong in WRONGS if path and path[0] not in ("schema_version", "tool", "config") else ():
            number += 1
            if number % STEP:
                continue
            report = copy.deepcopy(whole)
            place = report
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = wrong
            yield "%s = %s" % (path, wrong), report


def attempt(name, *words):
    """What is wrong with how the command ended, in a list."""
    done = subprocess.run([MEMSHIM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=120, check=False)
    if done.returncode in (0, 1, 2) and (done.returncode < 2 or done.stderr.startswith("memshim ")) and "runtime error" not in done.stderr:
        return []
    return ["%s: memshim %s: %d %s" % (name, " ".join(words), done.returncode, done.stderr[:600])]


def main():
    """A fact for each verb."""
    os.chdir(TMP)
    whole, wrong = made.report(3, 64, 3), {"check": [], "suppress": [], "diff": [], "merge": [], "merge of a job": []}
    whole["phases"] = [{"name": "step", "source": "nvtx", "count": 1, "open": 0, "marks": 0, "first_ns": 0, "last_ns": 1, "total_ns": 1, "devices": [{
        "device": 0, "count": 1, "peak_bytes": {"min": 1, "median": 1, "max": 1}, "peak_ns": 1, "growth_bytes": {"min": 0, "median": 0, "max": 0, "total": 0}, "trend_bytes": 0,
        "allocated_bytes": 1, "allocated_count": 1, "freed_bytes": 0, "freed_count": 0, "sites": [{"site": 0, "bytes": 1}]}]}]
    limits = [word for limit in ("peak 1", "peak owner=1", "peak phase=1", "leak 1", "leak device=1", "growth 0", "growth phase=0", "frag 1%", "reserved 1%") for word in
              ("--max-" + limit).split()]
    for other, path in ((4, "other.json"), (3, "same.json")):
        made.write(path, other, 64, 3)
    for name, report in damaged(whole, 0):
        with open("d.json", "w", encoding="utf-8") as file:
            json.dump(report, file)
        wrong["check"] += attempt(name, "check", "-f", "--sarif", "d.sarif", "--junit", "d.xml", *limits, "d.json")
        wrong["suppress"] += attempt(name, "suppress", "d.json")
        wrong["diff"] += attempt(name, "diff", "same.json", "d.json") + attempt(name, "diff", "--by", "phase", "--json", "d.json", "same.json")
        wrong["merge"] += attempt(name, "merge", "-f", "-o", "m.json", "other.json", "d.json")
    subprocess.run([MEMSHIM, "merge", "-f", "-o", "job.json", "other.json", "same.json"], stdout=subprocess.DEVNULL, check=False)
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    for name, report in damaged({"schema_version": "1.0", "run": job["run"], "ranks": job["ranks"], "job": job["job"]}, 0):
        with open("d.json", "w", encoding="utf-8") as file:
            json.dump(report, file)
        wrong["merge of a job"] += attempt(name, "merge", "-f", "-o", "m.json", "d.json")
    for verb, found in wrong.items():
        fact(not found, "%s ends by itself, whatever is damaged" % verb, found)
    plan(len(wrong))


if __name__ == "__main__":
    if os.access(MEMSHIM, os.X_OK):
        main()
    else:
        print("1..0 # SKIP the memshim command is not built")
