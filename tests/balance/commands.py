"""What the test programs are told that do nothing without being told: for each its command lines, with the simulator's variables of each. Programs
that list their parts are asked; the names of others' are read where the programs have them."""
import os
import re

TESTS = os.path.join(os.environ["top_srcdir"], "tests")
MIB = 1 << 20
SMALL = {"MEMSIM_MEMORY": "256M"}
TWO = {"MEMSIM_DEVICES": "2"}
SIM = os.environ["TEST_SIM"]


def built(*parts):
    return os.path.join(os.environ["top_builddir"], "tests", *parts)


def beside(*folders):
    """Libraries of these folders are found besides the simulator's."""
    return {"LD_LIBRARY_PATH": ":".join([SIM, *(built(folder) for folder in folders)])}


HOOKS = beside("hooks")
# Other people's allocators, where tests/thirdparty has built a program of them.
PEERS = os.path.join(os.environ["TEST_CACHE"], "peers")


def peer(*folders):
    return [([], {"LD_LIBRARY_PATH": ":".join([SIM, *(os.path.join(PEERS, folder) for folder in folders)]), **TWO, "MEMSIM_MEMORY": "1G",
                  "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})]


def named(path, pattern):
    """The names that a source has in its table of parts."""
    with open(os.path.join(TESTS, path), encoding="utf-8") as file:
        return re.findall(pattern, file.read())


def each(names, *more, **variables):
    return [([name, *more], variables) for name in names]


def listed(lines, *more, **variables):
    """As a program lists its parts: a name, and the variables that it wants."""
    return [([line.split()[0], *more], {**variables, **dict(word.split("=", 1) for word in line.split()[1:])}) for line in lines]


def planted():
    names = named("findings/planted.def", r"PLANTED\((\w+)\)\n")
    return each(names, **TWO) + each(names, "clean", **TWO)


# The lines of a program that lists its parts are given to the function.
TOLD = {
    "bench/follow": lambda lines: each(("cudaMalloc", "cudaMallocAsync", "cuMemAlloc"), "4", "100"),
    "bench/record": lambda lines: [(["5"], {})],
    "bench/live": lambda lines: [(["10000", "100"], {})],
    "captures/beside": lambda lines: each(named("captures/beside.c", r'\{"(\w+)", \w+\}'), "global", "10", **SMALL),
    "captures/beside_hip": lambda lines: each(named("captures/beside_hip.c", r'\{"(\w+)", \w+\}'), "global", "10", **SMALL),
    "check/check_user": lambda lines: [(["100", "20", "5"], {})],
    "cli/leaker": lambda lines: [(["3", "65536"], {})],
    "findings/planted": lambda lines: planted(),
    "gpu/costs": lambda lines: each(("idle", "busy"), "3"),
    "hip/hooks": lambda lines: each(named("hip/hooks.c", r'\{"(\w+)", \w+\}'), **TWO),
    "hip/rocblas": lambda lines: each(named("hip/rocblas.c", r'\{"(\w+)", \w+\}')),
    "hooks/chain_linked": lambda lines: [([], HOOKS)],
    "hooks/copies": lambda lines: [(["local=" + os.path.join(SIM, "libcudart.so.13"), "calls=" + built("hooks", "copies_plugin.so")], HOOKS)],
    "hooks/early_linked": lambda lines: [([], HOOKS)],
    "hooks/early_opened": lambda lines: [([built("hooks", "libearly.so")], HOOKS)],
    "hooks/every_class": lambda lines: [(["book"], TWO)],
    "hooks/later_linked": lambda lines: [(["linked"], {"LD_LIBRARY_PATH": built("hooks", "later")})],
    "hooks/later_user": lambda lines: each(("symbol", "default", "lookup", "next", "ends"), LD_LIBRARY_PATH=built("hooks", "later")),
    "hooks/misfrees": lambda lines: each(named("hooks/misfrees.c", r'\{"(\w+)", \w+_scene\}'), **TWO),
    "hooks/opener": lambda lines: [(["local=" + built("hooks", "module12.so"), "local=" + built("hooks", "module13.so")], HOOKS)],
    "hooks/reloader": lambda lines: [([os.path.join(SIM, "libcudart.so.13"), "cudaMalloc", "3"], {})],
    "hooks/policies": lambda lines: each(named("hooks/policies.c", r'\{"([\w-]+)", \w+\}')),
    "hooks/threads": lambda lines: each(named("hooks/threads.c", r'strcmp\(what, "([\w-]+)"\)')),
    "thirdparty/rmm_async": lambda lines: peer("librmm/lib64", "rapids_logger/lib64"),
    "thirdparty/torch_async": lambda lines: peer("torch/lib"),
    "ipc/exchange": lambda lines: [(["2", "packed", "2"], {}), (["2", "single", "1"], {}), (["4", "mixed", "1"], {})],
    "ipc/threads": lambda lines: [(["100"], {})],
    "ledger/churn": lambda lines: [(["log", "4", "20000"], {})],
    "ledger/ends": lambda lines: each(named("ledger/ends.c", r'\{"([\w-]+)", end_\w+\}')),
    "ledger/filtered": lambda lines: [([built("ledger", "exiting"), "1", "1000"], {})],
    "ledger/exiting": lambda lines: [(["4", "2000", *how], {}) for how in ((), ("fork",), ("signal",))],
    "ledger/steps": lambda lines: [(["book"], {})],
    "limbo/limbo": lambda lines: each(named("limbo/limbo.c", r'\{"([\w-]+)", \w+\}'), "100", MEMSHIM_OOM_WAIT_MS="150"),
    "nccl/buffers": lambda lines: each(named("nccl/buffers.c", r'\{"(\w+)", \w+\}'), **TWO),
    "nccl/communicators": lambda lines: [([], TWO)],
    "nohang/nohang": lambda lines: [line for kind in ("kernel", "value", "function") for line in listed(lines, kind, MEMSHIM_OOM_WAIT_MS="300")],
    "oom/oom_user": lambda lines: each(named("oom/oom_user.c", r'\{"(\w+)", \w+\}'), MEMSIM_MEMORY="1G"),
    "phases/markers_linked": lambda lines: each(("linked",), "book", "4", **beside("phases")) + each(("linked",), "hostile", **beside("phases")),
    "phases/markers_user": lambda lines: each(("opened", "header"), "book", "4", **beside("phases")) + each(("opened", "header"), "hostile", **beside("phases")),
    "phases/phases_user": lambda lines: [(["book", "4"], {})],
    "programs/ranks": lambda lines: [([], {"MEMSIM_DEVICES": "4"})],
    "programs/shapes": lambda lines: each(named("programs/shapes.c", r'\{"(\w+)", \w+\}')),
    "stream/rest": lambda lines: [([how, what, "96"], {}) for how in ("plain", "ordered", "pool") for what in ("free", "device")],
    "stream/waits": lambda lines: [([rules, end], {"MEMSIM_MEMORY": size, "MEMSHIM_OOM_WAIT_MS": "100"})
                                   for rules in ("000", "010", "101", "111") for end, size in (("device", "40M"), ("most", "1G"))],
    "systems/tvm": lambda lines: [(["2", "2", "-1", "65536", "%d" % (17 * MIB)], {"MEMSIM_DEVICES": "8"})],
    "traps/traps": listed,
}


# What is read from the standard input.
READ = {
    "balance/agent": "alloc 1000\nalloc 50000000\nsync\nfree 0\nasync 5000000\nsync\nmanaged 4096\ngraph 30000000\nsync\nquit\n",
    "ipc/agent": "alloc 1 4096\nalloc 2 30000000\nset 1 0 4096 7\nexport 2 0\nfree 1\nalloc 3 9000000\nquit\n",
}


def of(name, ask):
    """[(arguments, what it reads, variables)] for a program; `ask` runs one and returns the lines that it prints."""
    lines = TOLD[name](ask(["--list"]) if name in ("nohang/nohang", "traps/traps") else []) if name in TOLD else [([], {})]
    return [(words, READ.get(name, ""), variables) for words, variables in lines]


ALL = r"\w+"
# Pairs that have no row: program and arguments, mode, and what their reports say instead of it.
NONE = (
    # Memshim's own sources, and tools of the tests: they call no vendor.
    (r"(bench/(record 5|stack)|cli/(self_report|test_\w+|wheel_opener)|fuzz/\w+|helpers/\w+|pool/\w+|python/\w+|schedules/\w+|stack/(show\w*|test_\w+)|"
     r"unit/(?!report_sample|test_exports|test_trace)\w+)", ALL, "no report"),
    # The same, but they write ledgers, in which no driver was asked.
    (r"unit/(report_sample|test_trace)", ALL, "unasked"),
    (r"unit/test_exports", ALL, "no device"),
    # It ends while its threads make their first calls, by chance before one has come back.
    (r"traps/traps exit-among-threads", ALL, "rows"),
    (r"traps/traps exit-among-threads", ALL, "no device"),
    (r"traps/traps exit-among-threads", ALL, "no report"),
    # They ask for no memory, or whether there is a library.
    (r"hip/(first|probe)|hip/hooks probe|hooks/(inert|probe)", ALL, "no report"),
    # Each finds a library by a path from elsewhere, and does not begin.
    (r"hip/later_linked|ledger/late_user", ALL, "no report"),
    # Their driver is a stand-in that has no device, or they have none.
    (r"hooks/(exceptions|json_host|threads .*)|sim/runtime_lookup", ALL, "no device"),
    # Theirs says that all of its memory is free, always.
    (r"hooks/later_(linked|user) .*", ALL, "more_held"),
)
# Pairs whose rows add up, and cannot be held against the simulator's ledger: a child that was made without fork() has blocks in a granule of its
# parent's there, whose memory it goes on with; on hardware it could not.
NOT_HELD = ((r"ledger/ends clone", "track"),)
# Pairs that go on for ever, and are killed.
HANG = (
    # It does so until somebody ends it.
    (r"ledger/steps book", ALL),
    # As natively: a free waits for what only the program ends, after it.
    (r"oom/oom_user in_limbo", r"track|strict"),
    # It waits for a handle from a process that cannot export memory which is mapped by handle (docs/user/ipc.md).
    (r"hooks/small_stacks", "vmm"),
)


def expected(title, mode):
    """What may be found of the pair."""
    return [said for pattern, modes, said in NONE if re.fullmatch(pattern, title) and re.fullmatch(modes, mode)] or ["rows"]


def is_held(title, mode):
    return not any(re.fullmatch(pattern, title) and re.fullmatch(modes, mode) for pattern, modes in NOT_HELD)


def useless(pairs):
    """Exceptions that are of none of the pairs."""
    return [row for table in (NONE, NOT_HELD, HANG) for row in table
            if not any(re.fullmatch(row[0], title) and re.fullmatch(row[1], mode) for title, mode in pairs)]


def hangs(title, mode):
    return any(re.fullmatch(pattern, title) and re.fullmatch(modes, mode) for pattern, modes in HANG)
