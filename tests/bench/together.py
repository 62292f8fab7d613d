"""scripts/bench together: what threads that allocate at the same time take of the device. docs/internals/bench.md says what is measured."""

import os
import subprocess

PROGRAM = "tests/bench/together"
CASES = [("plain", 2), ("plain", 4), ("plain", 8), ("plain", 16), ("short", 8), ("large", 4), ("large", 16), ("mixed", 4), ("mixed", 16),
         ("grow", 4), ("grow", 8), ("turns", 8), ("random", 8), ("random", 16)]


def run(build, case, threads, environment):
    """What one run had live at most by its own book, and what the device had given at most, in MiB."""
    command = [os.path.join(build, PROGRAM), case, str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    words = done.stdout.split()
    return int(words[1]), int(words[3])


def bench_together(options):
    """A row for each case: the most of all rounds, natively and under memshim. What may be reserved is a tenth and 32 MiB more than
    natively, or than was live by the program's own book where threads met more often than natively."""
    native = {**options.environment, "MEMSIM_COUNT": "1"}
    shim = {**native, "LD_PRELOAD": os.path.join(options.build, "libmemshim.so"), "MEMSHIM_REPORT": "none"}
    rows = []
    for case, threads in CASES:
        most = {"native": 0, "memshim": 0, "live": 0}
        for _ in range(options.rounds):
            live, given = run(options.build, case, threads, native)
            most["native"] = max(most["native"], given)
            most["live"] = max(most["live"], live)
            live, given = run(options.build, case, threads, shim)
            most["memshim"] = max(most["memshim"], given)
            most["live"] = max(most["live"], live)
        base = max(most["native"], most["live"])
        rows.append({"case": case, "threads": threads, "live_mib": most["live"], "native_mib": most["native"],
                     "memshim_mib": most["memshim"], "over_native": round(most["memshim"] / most["native"], 3),
                     "over_live": round(most["memshim"] / base, 3), "allowed_mib": int(base * 1.1 + 32)})
    return rows
