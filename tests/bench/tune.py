"""scripts/bench tune: what each tuned number of the pool (src/pool/policy/params.def) is worth. docs/internals/bench.md says how to read it."""

import concurrent.futures
import glob
import os
import re
import sys
import tempfile

import allocators

ROW = re.compile(r'MS_(BYTES|TIME|RATIO)\((\w+), ([^,]+),\s*"((?:[^"\\]|\\.)*)"\)')
UNITS = {"MS_MIB": "1048576", "MS_KIB": "1024", "MS_SECOND": "1000000000"}
# What memory costs is judged by replays; times are defended by tests and by runahead.
KINDS = ("BYTES", "RATIO")
GROWN = 1 << 20  # as good as no bound, for a share or a multiple


def numbers(top):
    """name -> (kind, value) of all rows."""
    with open(os.path.join(top, "src/pool/policy/params.def"), encoding="ascii") as rows:
        found = ROW.findall(rows.read())
    values = {}
    for kind, name, text, _ in found:
        for unit, bytes_of in UNITS.items():
            text = text.replace(unit, bytes_of)
        value = 1
        for factor in text.rstrip("u").split("*"):
            value *= int(factor.strip().rstrip("u"))
        values[name] = (kind, value)
    return values


def others(kind, value):
    """What is tried in its place: nearly nothing, half, twice, and as good as no bound."""
    least = 4096 if kind == "BYTES" else 1
    tried = [least, value // 2, value * 2, value * 16 if kind == "BYTES" else GROWN]
    return [each for each in dict.fromkeys(tried) if each >= least and each != value]


def measure(tool, options, traces, more):
    """Of all traces: what was reserved over live with room to spare, the least device over live where that is asked for, and calls."""
    tool = allocators.Tool(tool.name, tool.command, {**tool.environment, **more})
    ratios, leasts, calls = [], [], 0
    for path, live in traces:
        roomy = allocators.completes(tool, options, path, max(8 * live, allocators.AMPLE))
        if not roomy:
            return None
        ratios.append(roomy["reserved_peak_bytes"] / live)
        calls += int(roomy["vendor_calls"])
        if options.least:
            leasts.append(allocators.least_capacity(tool, options, path, live, int(roomy["reserved_peak_bytes"])) / live)
    return ratios, leasts, calls


def row(name, value, standing, found):
    """Beside what stands: in parts of a hundred of live memory, the mean over all traces and the worst of them."""
    def beside(index):
        changes = [100 * (new - old) for new, old in zip(found[index], standing[index])]
        return (round(sum(changes) / len(changes), 2), round(max(changes), 1), round(min(changes), 1)) if changes else (None, None, None)
    mean, worst, best = beside(0)
    least_mean, least_worst, _ = beside(1)
    return {"number": name, "value": value, "reserved_mean": mean, "reserved_worst": worst, "reserved_best": best, "least_mean": least_mean,
            "least_worst": least_worst, "vendor_calls": found[2], "calls_over": round(found[2] / max(1, standing[2]), 3)}


def ways(options):
    """The calls that are replayed: synchronous ones, or in stream order."""
    tool = allocators.ours(options, {})[1]
    tool.environment.update(dict(pair for _, pairs in options.variant for pair in pairs.items()))
    return allocators.in_streams(tool) if options.streams else tool


def bench_tune(options):
    """Each number (of those that are named) at other values: a row for each, behind what stands."""
    values = numbers(options.top)
    named = [name for name in options.arguments if name in values]
    paths = [path for path in options.arguments if path not in values] or sorted(glob.glob(os.path.join(options.top, "tests/traces/*.trace*")))
    tool = ways(options)
    with tempfile.TemporaryDirectory() as place:
        traces = []
        for path in paths:
            plain = os.path.join(place, allocators.trace_name(path))
            with open(plain, "w", encoding="ascii") as out, allocators.opened(path, options) as text:
                out.writelines(text)
            traces.append((plain, allocators.live_peak(plain)))
        wanted = [(name, value) for name in named or values for value in others(*values[name]) if named or values[name][0] in KINDS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            standing = pool.submit(measure, tool, options, traces, {})
            found = list(pool.map(lambda pair: measure(tool, options, traces, {"MS_TUNE_" + pair[0]: str(pair[1])}), wanted))
        standing = standing.result()
    if not standing:
        sys.exit("a trace does not complete with the numbers that stand")
    rows = [{**row("(what stands)", 0, standing, standing), "reserved_mean": round(sum(standing[0]) / len(traces), 4),
             "least_mean": round(sum(standing[1]) / len(traces), 4) if options.least else None}]
    return rows + [row(name, value, standing, each) for (name, value), each in zip(wanted, found) if each]
