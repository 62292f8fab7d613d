"""scripts/bench tensors: what it costs that a framework's tensors are recorded. docs/internals/bench.md says what it measures.

The stand-in of PyTorch (tests/inner) gives and takes a piece, thousands of times; where PyTorch is installed (scripts/test-clients torch does
that) it does so itself, too, also with its own history of allocations. The ways take turns, and of each the least is compared, since others
on the machine only add. added_ns_per_pair is what a tensor's coming and going costs beside native.
"""

import os
import subprocess
import sys

PROGRAM = "tests/inner/inner_user"
FRAMES = [0, 28]
PYTHON = """
import sys, time, torch
if sys.argv[2] == "history":
    torch.cuda.memory._record_memory_history(max_entries=100000)
def pairs():
    begun = time.process_time()
    for _ in range(20000):
        torch.empty(1000, device="cuda")
    return (time.process_time() - begun) / 20000 * 1e9
def below(frames):
    return below(frames - 1) if frames else pairs()
print(min(below(int(sys.argv[1])) for _ in range(10)))
"""


def run(options, words, more):
    """Nanoseconds per pair."""
    environment = {**options.environment, **more}
    environment["LD_LIBRARY_PATH"] = "%s:%s" % (environment.get("LD_LIBRARY_PATH", options.build), os.path.join(options.build, "tests/inner"))
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return float(done.stdout.split()[-1])


def interpreter():
    """The one of the clients that has PyTorch; None where it was not installed."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients"))
    from kit import install  # pylint: disable=import-outside-toplevel
    return install.python("torch") if install.is_ready("torch") else None


def ways_of(options, frames):
    """Name, words and variables of what takes turns."""
    shim = {"LD_PRELOAD": os.path.join(options.build, "libmemshim.so"), "MEMSHIM_REPORT": "none"}
    program = [os.path.join(options.build, PROGRAM), "cost", str(frames)]
    ways = [("stand-in", "native", program, {}), ("stand-in", "memshim-stacks-off", program, {**shim, "MEMSHIM_STACKS": "off"}), ("stand-in", "memshim", program, shim)]
    python = interpreter()
    if python:
        memshim = [os.path.join(options.build, "memshim"), "run", "--sim", "-q", "-o", "none"]
        words = ["--", python, "-c", PYTHON, str(frames)]
        ways += [("PyTorch", "native", [*memshim, "--mode", "off", *words, "plain"], {}), ("PyTorch", "memshim-stacks-off", [*memshim, *words, "plain"], {"MEMSHIM_STACKS": "off"}),
                 ("PyTorch", "memshim-python-off", [*memshim, *words, "plain"], {"MEMSHIM_PYTHON": "off"}), ("PyTorch", "memshim", [*memshim, *words, "plain"], {}),
                 ("PyTorch", "history", [*memshim, "--mode", "off", *words, "history"], {})]
    return ways


def bench_tensors(options):
    """A row for each number of frames and way."""
    rows = []
    for frames in FRAMES:
        ways = ways_of(options, frames)
        least = {}
        for _ in range(options.rounds):
            for program, name, words, more in ways:
                taken = run(options, words, more)
                least[program, name] = min(taken, least.get((program, name), taken))
        for program, name, _, _ in ways:
            added = least[program, name] - least[program, "native"]
            rows.append({"program": program, "frames": frames, "allocator": name, "ns_per_pair": round(least[program, name], 1), "added_ns_per_pair": round(added, 1)})
    return rows
