#!/usr/bin/env python3
"""The conformance suite on the simulator: natively as tests/gpu/conformance.golden says, under memshim as natively.

Run by the harness; prints TAP. MODES is that of scripts/hardware.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "hw"), os.path.join(HERE, "..", "hooks")]
import compare  # noqa: E402
import stages  # noqa: E402
from gputap import BUILD, TMP, TOP, fact, plan  # noqa: E402
from hooklib import preload  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "gpu", "conformance")
def read(*path):
    """A file of the source tree."""
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def run(mode=None):
    """The suite's output; under a mode of memshim, or natively."""
    env = {**os.environ, "LD_LIBRARY_PATH": BUILD}
    if mode:
        env.update(LD_PRELOAD=preload(), **stages.MODES[mode],
                   MEMSHIM_REPORT=os.path.join(TMP, mode + ".%p.json"))
    done = subprocess.run([PROGRAM], env=env, stdout=subprocess.PIPE, text=True, timeout=100, check=False)
    return done.stdout


def judge(name, left, right, where):
    """Equal, but for what the page permits."""
    found = compare.differences(compare.values(left), compare.values(right),
                                compare.permitted(read("docs", "user", "hardware.md"), where))
    fact(not [f for f in found if f[3] is None], name,
         [f"{line}: {one} | {other}" for line, one, other, reason in found if reason is None])


golden = read("tests", "gpu", "conformance.golden")
plan(5 + 2 * len(stages.MODES))

changed = golden.replace("conform free.twice 1", "conform free.twice 0")
page = "## Permitted differences\n| `free.twice` | there | 1 | 0 | a reason |\n"
names = [line.split(" ")[1] for line in golden.splitlines()]
fact(len(names) == len(set(names)), "every line has a name of its own", [n for n in names if names.count(n) > 1])
a, b = compare.values(golden), compare.values(changed)
fact([f[:3] for f in compare.differences(a, b, {})] == [("free.twice", "1", "0")], "a line that differs is found")
fact(compare.differences(a, b, compare.permitted(page, "there"))[0][3] == "a reason" and
     compare.differences(a, b, compare.permitted(page, "here"))[0][3] is None and
     compare.differences(b, a, compare.permitted(page, "there"))[0][3] is None, "a difference is permitted where its row says")
fact(len(compare.differences(a, {k: v for k, v in a.items() if not k.startswith("ipc.")}, {})) > 5, "missing lines are found")

native = run()
if "GPU_GOLDEN" in os.environ:  # to write it anew, after a change that is meant
    with open(os.environ["GPU_GOLDEN"], "w", encoding="utf-8") as file:
        file.write(native)
judge("natively as the golden output says", golden, native, "simulator")
for each in stages.MODES:
    judge(f"with {stages.words(each)} as natively", native, run(each), each)
    reports = [n for n in os.listdir(TMP) if n.startswith(each + ".") and n.endswith(".json")]
    fact(len(reports) >= 15, f"memshim was there: {len(reports)} reports")
