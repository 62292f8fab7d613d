"""The benches of scripts/bench that compare allocators: pool, async, replay, random, runahead, shapes. docs/internals/bench.md says what they measure."""

import glob
import gzip
import io
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile

CASES = ["hit", "mix100", "mix1000", "mix10000", "mix1000000", "cross_thread", "miss"]
THREADS = [1, 2, 4, 16, 32]
MANY = 1000000  # blocks; the simulated driver itself, which looks for room from the beginning, is not asked for so many
COUNTED_PAIRS = 20000
GRANULE = 2 << 20
AMPLE = 64 << 30  # a device with room to spare
PEERS = {"torch": ["torch-native", "torch-expandable"], "rmm": ["rmm-pool", "rmm-arena", "rmm-binning"]}


class Tool:
    """A way to allocate: a program, the name that it knows it by, and the environment that makes it so."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment
        self.gave_up = set()  # cases in which it did not come to an end

    def run_quietly(self, options, more, timeout=60):
        """A program that prints no figures; whether it succeeded."""
        return subprocess.run(self.command, env={**options.environment, **self.environment, **more}, stdout=subprocess.DEVNULL, timeout=timeout,
                              check=False).returncode == 0

    def run(self, options, arguments, more, timeout=60):
        """The figures that a run prints, by name; None if it failed or took too long."""
        try:
            done = subprocess.run([*self.command, *map(str, arguments)], env={**options.environment, **self.environment, **more},
                                  capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            print(f"{self.name} {' '.join(map(str, arguments))}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def cache():
    """Where the peers are kept: they are the same for all builds."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "memshim", "peers")


def compile_peer(options, name, place):
    """The program that measures a peer; made of the same objects as ours."""
    sources = os.path.join(options.top, "tests/bench")
    program = os.path.join(options.build, "tests/bench/peers", name)
    objects = [os.path.join(options.build, "tests/bench/alloc", part + ".o") for part in ("main", "pool", "replay", "recipe", "runahead", "shapes", "small")]
    source = os.path.join(sources, "peers", name + ".cc")
    libraries = {"torch": ["torch/lib"], "rmm": ["librmm/lib64", "rapids_logger/lib64"]}[name]
    includes = {"torch": ["torch/include"], "rmm": ["librmm/include", "librmm/include/rapids", "rapids_logger/include"]}[name]
    links = {"torch": ["-lc10_cuda", "-lc10"], "rmm": ["-lrmm", "-lrapids_logger"]}[name]
    needed = [source, os.path.join(place, "installed"), *objects]
    if not os.path.exists(program) or any(os.path.getmtime(path) > os.path.getmtime(program) for path in needed):
        os.makedirs(os.path.dirname(program), exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O3", "-DNDEBUG", "-w", "-I" + options.top,
                        *("-I" + os.path.join(place, path) for path in [*includes, "nvidia/cu13/include"]), source, *objects,
                        *("-L" + os.path.join(place, path) for path in libraries), *links,
                        os.path.join(options.build, "libcudart.so.13"), "-ldl", "-lm", "-pthread", "-o", program], check=True)
    path = ":".join([options.build, *(os.path.join(place, library) for library in libraries)])
    return [Tool(peer, [program, peer], {"LD_LIBRARY_PATH": path}) for peer in PEERS[name]]


def peers(options):
    """The peers' ways, installed and built first."""
    if not options.peers:
        return []
    place = cache()
    if subprocess.run([os.path.join(options.top, "tests/bench/peers/install.sh"), place], check=False).returncode != 0:
        sys.exit(1)
    return [tool for name in PEERS for tool in compile_peer(options, name, place)]


def ours(options, variants):
    """native, memshim with its defaults, and the variants: name -> variables; --variant adds more."""
    command = [os.path.join(options.build, "tests/bench/alloc/alloc"), "runtime"]
    preload = {"LD_PRELOAD": os.path.join(options.build, "libmemshim.so"), "MEMSHIM_REPORT": "none"}
    variants = {**variants, **dict(options.variant)}
    return [Tool("native", command, {}), Tool("memshim", command, preload)] + [
        Tool("memshim-" + name, command, {**preload, **variables}) for name, variables in variants.items()]


def median(values):
    """Of those that are there; None if none is."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def rounded(value, digits=1):
    """For a row."""
    return None if value is None else int(value) if digits == 0 else round(value, digits)


# --- pool


def takes_part(tool, case, threads):
    """Whether a case means anything for it."""
    if case == "cross_thread" and threads < 2:
        return False
    return not (tool.name in ("native", "memshim-track") and case == f"mix{MANY}") and case not in tool.gave_up


def measure_pool(tool, options, case, threads, taken):
    """One round of one case; what it said is added to `taken`."""
    memory = {"MEMSIM_MEMORY": "16T" if case == f"mix{MANY}" else "512G"}
    if not takes_part(tool, case, threads):
        return
    figures = tool.run(options, ["pool", case, threads, options.milliseconds], memory)
    if figures:
        taken.append(figures)
    else:
        tool.gave_up.add(case)


def pool_row(tool, options, case, threads, taken):
    """The medians of all rounds, and what is counted in a run of its own."""
    memory = {"MEMSIM_MEMORY": "16T" if case == f"mix{MANY}" else "512G", "MEMSIM_COUNT": "1"}
    counted = tool.run(options, ["pool", case, threads, f"pairs={COUNTED_PAIRS}"], memory) if taken else None
    pairs = counted and counted["pairs"]
    return {
        "allocator": tool.name,
        "case": case,
        "threads": threads,
        "p50_ns": rounded(median(figures["p50_ns"] for figures in taken)),
        "p99_ns": rounded(median(figures["p99_ns"] for figures in taken)),
        "pairs_per_s": rounded(median(figures["pairs_per_s"] for figures in taken), 0),
        "cpu_ns_per_pair": rounded(median(figures["cpu_ns_per_pair"] for figures in taken)),
        "events_per_1000_frees": counted and rounded(counted["events"] * 1000 / pairs, 2),
        "device_syncs": counted and int(counted["syncs"]),
        "vendor_calls": counted and int(counted["vendor_calls"]),
        "counted_pairs": counted and int(pairs),
    }


def bench_pool(options):
    """The tools take turns within each case, so that a slow minute hits them all."""
    tools = ours(options, {"stacks-off": {"MEMSHIM_STACKS": "off"}, "track": {"MEMSHIM_MODE": "track"}}) + peers(options)
    rows = []
    for case in options.cases or CASES:
        for threads in options.threads or THREADS:
            taken = {tool.name: [] for tool in tools}
            for _ in range(min(2, options.rounds) if case == f"mix{MANY}" else options.rounds):
                for tool in tools:
                    measure_pool(tool, options, case, threads, taken[tool.name])
            rows += [pool_row(tool, options, case, threads, taken[tool.name]) for tool in tools
                     if case != "cross_thread" or threads > 1]
    return rows


# --- async

# What the driver's own functions take, in nanoseconds: recording an event and asking for a stream's identity as measured on hardware, the rest as
# guessed from what is published. What memshim itself asks the driver costs it the same.
DRIVER_COSTS = "cuEventRecord=450,cuCtxRecordEvent=450,cuEventQuery=150,cuStreamGetId=20,cuMemAllocAsync=500,cuMemAllocFromPoolAsync=500,cuMemFreeAsync=500"
ASYNC_CASES = {"hit": "stream", "cross_stream": "cross_stream", "many_streams": "many_streams"}


def in_streams(tool):
    """The same way in, by the calls in stream order."""
    return Tool(tool.name, [*tool.command[:-1], "runtime-async"], tool.environment)


def in_held_streams(tool):
    """... of streams that do not get anywhere until the end."""
    return Tool(tool.name, [*tool.command[:-1], "runtime-async-held"], tool.environment)


def renamed(tool, name):
    """... under another name."""
    tool.name = name
    return tool


def bench_async(options):
    """Stream-ordered calls: the driver's own pool, memshim, and PyTorch's allocator, which has streams as well."""
    tools = [in_streams(tool) for tool in ours(options, {"stacks-off": {"MEMSHIM_STACKS": "off"}})]
    tools += [peer for peer in peers(options) if peer.name.startswith("torch")]
    for tool in tools:
        tool.environment = {**tool.environment, "MEMSIM_COST": DRIVER_COSTS}
    rows = []
    for case in options.cases or ASYNC_CASES:
        for threads in options.threads or [1, 2, 4]:
            taken = {tool.name: [] for tool in tools}
            for _ in range(options.rounds):
                for tool in tools:
                    measure_pool(tool, options, ASYNC_CASES[case], threads, taken[tool.name])
            rows += [{**pool_row(tool, options, ASYNC_CASES[case], threads, taken[tool.name]), "case": case} for tool in tools]
    return rows


# --- replay


def opened(path, options):
    """A trace's text."""
    with open(path, "rb") as file:
        first = file.read(4096)
    if first[:4] == b"\x28\xb5\x2f\xfd" or b"\n# binary " in first:
        done = subprocess.run([os.path.join(options.build, "memshim"), "trace", "--text", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr.strip())
        return io.StringIO(done.stdout)
    if path.endswith(".xz"):
        return lzma.open(path, "rt", encoding="ascii")
    return gzip.open(path, "rt", encoding="ascii") if path.endswith(".gz") else open(path, encoding="ascii")


def trace_name(path):
    """As the row has it: the file's base name, whether it is compressed or not."""
    name = os.path.basename(path)
    return name.rsplit(".", 1)[0] if name.endswith((".xz", ".gz")) else name


def completes(tool, options, trace, memory):
    """What it said of a replay on a device of so many bytes, None if it did not get to the end."""
    figures = tool.run(options, ["replay", trace], {"MEMSIM_MEMORY": str(memory), "MEMSIM_COUNT": "1"}, 120)
    return figures if figures and figures["completed"] else None


def least_capacity(tool, options, trace, live, reserved):
    """The smallest device, in whole granules, on which the trace completes: by bisection."""
    low, high = live // GRANULE - 1, -(-reserved // GRANULE)
    while high * GRANULE < 8 * reserved and not completes(tool, options, trace, high * GRANULE):
        low, high = high, high + high // 2
    while high - low > max(1, high // 2000):
        middle = (low + high) // 2
        if completes(tool, options, trace, middle * GRANULE):
            high = middle
        else:
            low = middle
    return high * GRANULE


def live_peak(trace):
    """The most that was asked for at a time."""
    live, now, peak = {}, 0, 0
    with open(trace, encoding="ascii") as text:
        for _, operation, block, size, _ in (line.split()[:5] for line in text if line[0] not in "#\n"):
            if operation == "a":
                live[block] = int(size)
            now += live[block] if operation == "a" else -live.pop(block)
            peak = max(peak, now)
    return peak


def replay_row(tool, options, trace, name, live):
    """A replay with room to spare, one that is tight, and the bisection."""
    ample = max(8 * live, AMPLE)
    roomy = completes(tool, options, trace, ample)
    reserved = int(roomy["reserved_peak_bytes"]) if roomy else None
    tight = completes(tool, options, trace, live * 21 // 20) if roomy else None
    least = least_capacity(tool, options, trace, live, reserved) if roomy else None
    uncounted = tool.run(options, ["replay", trace], {"MEMSIM_MEMORY": str(ample)}, 120) if roomy else None
    return {
        "allocator": tool.name,
        "trace": name,
        "live_peak_bytes": live,
        "reserved_peak_bytes": reserved,
        "reserved_over_live": roomy and rounded(reserved / live, 4),
        "least_capacity_bytes": least,
        "least_capacity_over_live": least and rounded(least / live, 4),
        "vendor_calls": roomy and int(roomy["vendor_calls"]),
        "vendor_calls_tight": tight and int(tight["vendor_calls"]),
        "device_syncs": roomy and int(roomy["syncs"]),
        "ns_per_event": uncounted and rounded(uncounted["ns_per_event"]),
        "cpu_ns_per_event": uncounted and rounded(uncounted["cpu_ns_per_event"]),
    }


def traces_of(options):
    """Those that are named, or the repository's."""
    return options.arguments or sorted(glob.glob(os.path.join(options.top, "tests/traces/*.trace*")))


def bench_replay(options):
    """Each trace on each allocator; without a trace those of the repository."""
    variants = {"pack-all": {"MEMSHIM_PACK": "all"}, "vmm": {"MEMSHIM_BACKING": "vmm"},
                "track": {"MEMSHIM_MODE": "track"}}
    mine = ours(options, variants)
    tools = mine + [peer for peer in peers(options) if peer.name.startswith("torch")]
    if options.streams:
        tools += [renamed(in_streams(tool), tool.name + "-async") for tool in mine[:2]]
    if options.held:
        tools += [renamed(in_held_streams(tool), tool.name + "-held") for tool in mine[:2]]
    rows = []
    for path in traces_of(options):
        with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".trace") as plain, opened(path, options) as text:
            plain.writelines(text)
            plain.flush()
            try:
                live = live_peak(plain.name)
            except (ValueError, KeyError):
                sys.exit(f"{path} is not a trace, or frees what it did not allocate")
            rows += [replay_row(tool, options, plain.name, trace_name(path), live) for tool in tools]
    return rows


# --- random


def random_row(tool, options, limit, operations):
    """The median of the rounds, with the same random numbers for all, and what is counted."""
    case = f"{limit} {operations}"
    arguments = ["random", limit, operations, options.cap]
    taken = []
    for number in range(options.rounds):
        figures = tool.run(options, [*arguments, number + 1], {"MEMSIM_MEMORY": "48G"}) if case not in tool.gave_up else None
        if not figures:
            tool.gave_up.add(case)
            break
        taken.append(figures)
    counted = tool.run(options, [*arguments, 1], {"MEMSIM_MEMORY": "48G", "MEMSIM_COUNT": "1"}) if taken else None
    return {
        "allocator": tool.name,
        "max_mib": limit,
        "operations": operations,
        "ns_per_op": rounded(median(figures["ns_per_op"] for figures in taken)),
        "cpu_ns_per_op": rounded(median(figures["cpu_ns_per_op"] for figures in taken)),
        "live_peak_bytes": counted and int(counted["live_peak_bytes"]),
        "reserved_peak_bytes": counted and int(counted["reserved_peak_bytes"]),
        "reserved_over_live": counted and rounded(counted["reserved_peak_bytes"] / counted["live_peak_bytes"], 4),
        "vendor_calls": counted and int(counted["vendor_calls"]),
        "failures": counted and int(counted["failures"]),
    }


def bench_random(options):
    """RMM's recipe, in all its sizes and lengths."""
    tools = ours(options, {"track": {"MEMSHIM_MODE": "track"}}) + peers(options)
    return [random_row(tool, options, limit, operations) for limit in options.limits or (1, 4, 64, 256, 1024, 4096)
            for operations in options.operations or (1000, 10000, 100000) for tool in tools]


# --- runahead


def told_by_report(path):
    """What memshim's own report says of one run: limbo when most was reserved, waits for it, and what the policy counted."""
    if not os.path.exists(path):
        return {"limbo": None, "waits": None}
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    os.remove(path)
    parts = [device["peak_parts"] for device in report["devices"] if device.get("peak_reserved_bytes")]
    return {"limbo": sum(part["limbo"] for part in parts), "waits": sum(pool.get("limbo_waits", 0) for pool in report["pools"])}


def runahead_row(tool, options, ahead_ms):
    """The medians of the rounds; calls are counted in all of them, for all alike."""
    taken = []
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "report.json")
        report = {"MEMSHIM_REPORT": path} if "LD_PRELOAD" in tool.environment else {}
        told = {"limbo": None, "waits": None}
        for _ in range(max(1, min(3, options.rounds))):
            figures = tool.run(options, ["runahead", ahead_ms, options.iterations], {"MEMSIM_MEMORY": "64G", "MEMSIM_COUNT": "1", **report})
            if figures:
                taken.append(figures)
                told = told_by_report(path)

    def middle(name, digits=0):
        return rounded(median(figures[name] for figures in taken), digits)
    return {
        "allocator": tool.name,
        "asked_ahead_ms": ahead_ms,
        "ahead_ms": middle("ahead_ms", 1),
        "live_peak_bytes": middle("live_peak_bytes"),
        "in_flight_peak_bytes": middle("in_flight_peak_bytes"),
        "reserved_peak_bytes": middle("reserved_peak_bytes"),
        "reserved_over_live": taken and rounded(middle("reserved_peak_bytes") / middle("live_peak_bytes"), 3) or None,
        "limbo_bytes_at_peak": told["limbo"],
        "limbo_waits": told["waits"],
        "events": middle("events"),
        "device_syncs": middle("syncs"),
        "vendor_calls": middle("vendor_calls"),
        "seconds_over_stream": taken and rounded(middle("seconds", 3) / middle("stream_seconds", 3), 3) or None,
        "wrong": taken and int(max(figures["wrong"] for figures in taken)),
    }


def bench_runahead(options):
    """A host that is not ahead, and one that is by half a second: cudaMalloc, cudaMallocAsync, hipMalloc, and PyTorch's allocator."""
    command = [os.path.join(options.build, "tests/bench/alloc/alloc"), "runtime-default-async"]
    preload = {"LD_PRELOAD": os.path.join(options.build, "libmemshim.so"), "MEMSHIM_REPORT": "none"}
    tools = ours(options, {})
    tools += [Tool("native-async", command, {}), Tool("memshim-async", command, preload)]
    hip = [command[0] + "_hip", "runtime"]
    tools += [Tool("native-hip", hip, {}), Tool("memshim-hip", hip, preload)]
    tools += [peer for peer in peers(options) if peer.name.startswith("torch")]
    return [runahead_row(tool, options, ahead_ms) for ahead_ms in options.ahead or (0, 500) for tool in tools]


# --- shapes

SHAPES = ("loop", "layers", "growing", "tiny", "serving")
# What a fill or a copy takes on its stream: a small kernel's time, and more than the host needs to queue one.
WORK_COSTS = "memset=50000,copy=50000"


def shapes_row(tool, options, shape, streams):
    """The medians of the rounds; of memory the most of them, and limbo as the report of the last has it."""
    taken, told = [], {"limbo": None, "waits": None}
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "report.json")
        more = {"MEMSIM_MEMORY": "64G", "MEMSIM_COUNT": "1", "MEMSIM_COST": WORK_COSTS}
        if "LD_PRELOAD" in tool.environment:
            more["MEMSHIM_REPORT"] = path
        for _ in range(max(1, min(3, options.rounds))):
            figures = tool.run(options, ["shapes", shape, streams], more)
            if figures:
                taken.append(figures)
                told = told_by_report(path)
    live = taken and int(max(figures["live_peak_bytes"] for figures in taken))
    reserved = taken and int(max(figures["reserved_peak_bytes"] for figures in taken))
    return {
        "allocator": tool.name,
        "shape": shape,
        "streams": streams,
        "live_peak_bytes": live or None,
        "largest_bytes": taken and int(taken[0]["largest_bytes"]) or None,
        "reserved_peak_bytes": reserved or None,
        "reserved_over_live": taken and rounded(reserved / live, 3) or None,
        "limbo_bytes_at_peak": told["limbo"],
        "events": taken and rounded(median(figures["events"] for figures in taken), 0),
        "vendor_calls": taken and rounded(median(figures["vendor_calls"] for figures in taken), 0),
        "seconds": taken and rounded(median(figures["seconds"] for figures in taken), 3),
    }


def bench_shapes(options):
    """Programs whose host never waits, on one stream and on four: cudaMalloc, cudaMallocAsync, and PyTorch's allocator."""
    mine = ours(options, {})
    tools = mine + [renamed(in_streams(tool), tool.name + "-async") for tool in mine[:2]]
    tools += [peer for peer in peers(options) if peer.name.startswith("torch")]
    return [shapes_row(tool, options, shape, streams) for shape in options.cases or SHAPES for streams in options.threads or (1, 4)
            for tool in tools]
