"""What the test programs are told that do nothing without being told: for each its command lines, with the simulator's variables of each. Programs
that list their parts are asked; the names of others' are read where the programs have them."""
import os
import re

TESTS = os.path.join(os.environ["top_srcdir"], "tests")
MIB = 1 << 20
SMALL = {"MEMSIM_MEMORY": "256M"}
TWO = {"MEMSIM_DEVICES": "2"}


def named(path, pattern):
    """The names that a source has in its table of parts."""
    with open(os.path.join(TESTS, path), encoding="utf-8") as file:
        return re.findall(pattern, file.read())


def each(names, *more, **variables):
    return [([name, *more], variables) for name in names]


def listed(lines, *more):
    """As a program lists its parts: a name, and the variables that it wants."""
    return [([line.split()[0], *more], dict(word.split("=", 1) for word in line.split()[1:])) for line in lines]


def planted():
    names = named("findings/planted.def", r"PLANTED\((\w+)\)\n")
    return each(names, **TWO) + each(names, "clean", **TWO)


# What the ledger's lines cannot be held against: each of two runtimes of one process has the other's memory under `others`; and where threads make
# the first blocks at once, what the runtime adds to these in granules may be in the context that is told behind them.
NOT_HELD = ("two_versions", "all", "threads")

# The lines of a program that lists its parts are given to the function.
TOLD = {
    "bench/follow": lambda lines: each(("cudaMalloc", "cudaMallocAsync", "cuMemAlloc"), "4", "100"),
    "bench/live": lambda lines: [(["10000", "100"], {})],
    "captures/beside": lambda lines: each(named("captures/beside.c", r'\{"(\w+)", \w+\}'), "global", "10", **SMALL),
    "captures/beside_hip": lambda lines: each(named("captures/beside_hip.c", r'\{"(\w+)", \w+\}'), "global", "10", **SMALL),
    "check/check_user": lambda lines: [(["100", "20", "5"], {})],
    "cli/leaker": lambda lines: [(["3", "65536"], {})],
    "findings/planted": lambda lines: planted(),
    "gpu/costs": lambda lines: each(("idle", "busy"), "3"),
    "hip/hooks": lambda lines: each([name for name in named("hip/hooks.c", r'\{"(\w+)", \w+\}') if name not in NOT_HELD], **TWO),
    "hip/rocblas": lambda lines: each(named("hip/rocblas.c", r'\{"(\w+)", \w+\}')),
    "hooks/every_class": lambda lines: [(["book"], {})],
    "hooks/misfrees": lambda lines: each(named("hooks/misfrees.c", r'\{"(\w+)", \w+_scene\}'), **TWO),
    "hooks/policies": lambda lines: each(named("hooks/policies.c", r'\{"([\w-]+)", \w+\}')),
    "hooks/threads": lambda lines: each(named("hooks/threads.c", r'strcmp\(what, "([\w-]+)"\)')),
    "ipc/exchange": lambda lines: [(["2", "packed", "2"], {}), (["2", "single", "1"], {}), (["4", "mixed", "1"], {})],
    "ipc/threads": lambda lines: [(["100"], {})],
    "ledger/churn": lambda lines: [(["log", "4", "20000"], {})],
    "ledger/ends": lambda lines: each(named("ledger/ends.c", r'\{"([\w-]+)", end_\w+\}')),
    "ledger/exiting": lambda lines: [(["4", "2000", *how], {}) for how in ((), ("fork",), ("signal",))],
    "limbo/limbo": lambda lines: each(named("limbo/limbo.c", r'\{"([\w-]+)", \w+\}'), "100"),
    "nccl/buffers": lambda lines: each(named("nccl/buffers.c", r'\{"(\w+)", \w+\}'), **TWO),
    "nccl/communicators": lambda lines: [([], TWO)],
    "nohang/nohang": lambda lines: [line for kind in ("kernel", "value", "function") for line in listed(lines, kind)],
    "oom/oom_user": lambda lines: each(named("oom/oom_user.c", r'\{"(\w+)", \w+\}'), MEMSIM_MEMORY="1G"),
    "phases/phases_user": lambda lines: [(["book", "4"], {})],
    "programs/ranks": lambda lines: [([], {"MEMSIM_DEVICES": "4"})],
    "programs/shapes": lambda lines: each(named("programs/shapes.c", r'\{"(\w+)", \w+\}')),
    "stream/waits": lambda lines: [([rules, end], {"MEMSIM_MEMORY": size, "MEMSHIM_OOM_WAIT_MS": "100"})
                                   for rules in ("000", "010", "101", "111") for end, size in (("device", "40M"), ("most", "1G"))],
    "systems/tvm": lambda lines: [(["2", "2", "-1", "65536", "%d" % (17 * MIB)], {"MEMSIM_DEVICES": "8"})],
    "traps/traps": listed,
}


def of(name, ask):
    """[(arguments, variables)] for a program; `ask` runs one and returns the lines that it prints."""
    return TOLD[name](ask(["--list"]) if name in ("nohang/nohang", "traps/traps") else []) if name in TOLD else [([], {})]
