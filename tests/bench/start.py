"""scripts/bench start: what a process costs that has memshim preloaded and never touches a GPU, as with /etc/ld.so.preload every one has.
docs/user/containers.md has the table. An empty library beside it says what any preloaded library costs."""

import os
import statistics
import subprocess
import sys
import tempfile

# What is run: nothing at all, a shell, an interpreter, and programs that work for a tenth of a second and more.
PROGRAMS = {
    "true": ["/bin/true"],
    "sh -c :": ["/bin/sh", "-c", ":"],
    "python3 -c pass": ["/usr/bin/python3", "-S", "-c", "pass"],
    "sort": ["/usr/bin/sort", "-o", "/dev/null", None],
    "python3 loop": ["/usr/bin/python3", "-S", "-c", "sum(n * n for n in range(2000000))"],
}
RUNS = {"true": 200, "sh -c :": 200, "python3 -c pass": 40, "sort": 5, "python3 loop": 5}


def took(command, environment):
    """Microseconds of processor time."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command[0]} ended with {child.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e6


def empty_library(place):
    """A library that has nothing in it."""
    path = os.path.join(place, "empty.so")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-x", "c", "-o", path, "/dev/null"], check=True)
    return path


def bench_start(options):
    """The variants take turns, so that a slow minute hits them all."""
    with tempfile.TemporaryDirectory() as place:
        lines = os.path.join(place, "lines")
        with open(lines, "w", encoding="ascii") as file:
            file.writelines("%d\n" % (n * 7919 % 300007) for n in range(300000))
        plain = {name: value for name, value in options.environment.items() if name != "LD_LIBRARY_PATH"}
        variants = {"native": plain, "empty-library": {**plain, "LD_PRELOAD": empty_library(place)},
                    "memshim": {**plain, "LD_PRELOAD": os.path.join(options.build, "libmemshim.so")}}
        rows = []
        for program, words in PROGRAMS.items():
            command = [word or lines for word in words]
            taken = {name: [] for name in variants}
            for _ in range(RUNS[program] * options.rounds):
                for name, environment in variants.items():
                    taken[name].append(took(command, environment))
            native = statistics.median(taken["native"])
            for name, figures in taken.items():
                us = statistics.median(figures)
                rows.append({"allocator": name, "program": program, "cpu_us": round(us), "ratio_to_native": round(us / native, 3),
                             "added_us": round(us - native)})
        return rows
