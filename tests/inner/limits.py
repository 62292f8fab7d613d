#!/usr/bin/env python3
"""memshim check holds tensors against limits and a baseline, and memshim run does: the line of the tensor is named, and what cannot be
checked is said."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from innerlib import DIRECTORY, USER, play, read  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, native_environment, plan  # noqa: E402


def command(*words, libraries=""):
    """Its status, and all that it said."""
    done = subprocess.run([MEMSHIM, *words], env=dict(native_environment(), LD_LIBRARY_PATH=native_environment()["LD_LIBRARY_PATH"] + libraries), text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check_limits(path):
    device = read(path)["inner_devices"][0]
    most, share = device["peak_live_bytes"], device["peak_live_bytes"] * 100 // device["total_bytes"] + 1
    status, told = command("check", "--max-peak", "tensors=%d" % most, "--max-peak", "tensors:device:0=%d%%" % share, "--max-growth", "tensors:phase:train step=59K", path)
    fact(status == 0 and "0 of 3 checks failed" in told, "tensors at their limits keep them", [told])
    status, told = command("check", "--max-peak", "tensors=%d" % (most - 1), path)
    fact(status == 1 and "FAILED  peak of tensors of device 0: " in told and " by keep_loss at " in told, "a byte more is told, with the line", [told])
    status, told = command("check", "--max-peak", "tensors:owner=1M", "--max-peak", "tensors:phase=1M", "--max-growth", "tensors:phase=58K", path)
    fact(status == 1 and all("FAILED  " + what in told for what in ("peak of tensors of owner PyTorch", "peak of tensors of phase train step", "growth of tensors of phase train step"))
         and "3 of 3 checks failed" in told, "and of owners and phases", [told])
    status, told = command("check", "--max-growth", "tensors=1G", path)
    fact(status == 0 and "ok      growth of tensors by time: " in told, "growth that is of no phase is told to be by time", [told])
    status, told = command("check", "--json", "--max-peak", "tensors=1K", "--max-peak", "1K", path)
    rows = json.loads(told)["checks"]
    fact([(row["layer"], "inner_site" in row, "site" in row) for row in rows] == [("tensors", True, False), ("blocks", False, True)] and "keep_loss" in json.dumps(rows[0]["stack"]),
         "JSON says of which layer each is", [rows])


def check_baseline(path):
    kept = os.path.join(TMP, "base.json")
    command("check", "--baseline", kept, "--update-baseline", path)
    status, told = command("check", "--baseline", kept, path)
    fact(status == 0 and "\nok      peak of tensors of device 0: " in told, "a baseline has tensors", [told])
    with open(kept, encoding="utf-8") as file:
        base = json.load(file)
    for row in base["figures"]:
        if row.get("layer") == "tensors" and row["figure"] == "peak" and row["of"] == "device":
            row["bytes"] //= 2
    with open(kept, "w", encoding="utf-8") as file:
        json.dump(base, file)
    status, told = command("check", "--baseline", kept, path)
    fact(status == 1 and "FAILED  peak of tensors of device 0: " in told and "1 of " in told, "and tensors beyond it are told", [told])
    base["figures"] = [row for row in base["figures"] if row.get("layer") != "tensors"]
    with open(kept, "w", encoding="utf-8") as file:
        json.dump(base, file)
    fact(command("check", "--baseline", kept, path)[0] == 0, "one from before tensors holds blocks alone", [command("check", "--baseline", kept, path)])


def check_refused(path, other):
    plain = os.path.join(TMP, "plain.json")
    with open(plain, "w", encoding="utf-8") as file:
        json.dump({name: value for name, value in read(path).items() if not name.startswith("inner_") and name != "heaps"}, file)
    for limit in ("tensors=1G", "tensors:owner:activations=1G"):
        status, told = command("check", "--max-peak", limit, plain)
        fact(status == 2 and told == "memshim check: --max-peak %s: no report has tensors; frameworks that tell theirs are in docs/user/tensors.md\n" % limit,
             "%s cannot be held where there are none" % limit, [status, told])
    fact(command("check", "--max-peak", "tensors=1G", plain, path)[0] == 0, "one process of several that has them is enough", [])
    status, told = command("check", "--max-leak", "tensors=0", path)
    fact(status == 2 and "'tensors=0': before the = may stand process" in told, "tensors do not count as leaked", [told])
    status, told = command("check", "--max-peak", "tensors:class=1K", path)
    fact(status == 2 and "tensors, or tensors: before these" in told, "a wrong word is refused with those that are allowed", [told])
    job = os.path.join(TMP, "job.json")
    command("merge", "-o", job, path, other)
    status, told = command("check", "--max-peak", "tensors=1G", job)
    fact(status == 2 and "a job report has no figures of tensors; check the reports that were merged" in told, "and so is a job report", [told])


def check_run():
    """The same rules in one step."""
    path = os.path.join(TMP, "run.json")
    status, told = command("run", "-q", "-f", "-o", path, "--fail-on-peak", "tensors=1M", "--", USER, "grow", libraries=":" + DIRECTORY)
    fact(status == 23 and "peak of tensors of device 0: 1.5 MiB, allowed 1.0 MiB" in told, "run ends with its own status beyond a limit", [status, told])
    status, told = command("run", "-q", "-f", "-o", path, "--fail-on-peak", "tensors=2M", "--", USER, "grow", libraries=":" + DIRECTORY)
    fact(status == 0, "and with the program's at it", [status, told])


plan(16)
grown, mixed = play("grow")[1], play("torch", "2")[1]
check_limits(grown)
check_baseline(grown)
check_refused(grown, mixed)
check_run()
