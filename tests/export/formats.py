#!/usr/bin/env python3
"""What `memshim export` writes is what each format's documentation allows (readers.py), and its sums are those of the report: of a report made by hand, of a
real program's with its trace, and of one whose every name was made to do harm. The tools themselves: scripts/test-exports."""
import copy
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", "export"), os.path.join(os.environ["top_srcdir"], "tests", "hooks")]
import readers  # noqa: E402
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment, skip, trace_lines  # noqa: E402

VALUES = {"peak": "at_peak_bytes", "live": "live_bytes", "leaked": None, "total": "total_bytes", "count": "total_count", "rounding": "rounding_bytes"}
TITLES = {"peak": "At peak", "live": "Allocated at the end", "leaked": "Leaked", "total": "Allocated in total", "count": "Allocations", "rounding": "Rounding"}
PPROF = {"peak": "peak_space", "live": "inuse_space", "leaked": "leaked_space", "total": "alloc_space", "count": "alloc_objects", "rounding": "rounding_space"}
DHAT = {"peak": "gb", "live": "eb", "total": "tb", "count": "tbk"}
HARM = "\u009b31m\x1b]0;x\x07\x7f\u0085\r\n;\"'\\,=<script>\u2028 "


def export(path, *words):
    """(the bytes, the error lines)."""
    done = subprocess.run([MEMSHIM, "export", *words, path], capture_output=True, timeout=120, check=False)
    return done.stdout if done.returncode == 0 else b"", done.stderr.decode("utf-8", "replace")


def sums_of(report):
    """By value; what is leaked is in rows of its own."""
    sums = {value: sum(site[key] for site in report["sites"]) for value, key in VALUES.items() if key}
    sums["leaked"] = sum(leak["bytes"] for leak in report["leaks"] if leak["class"] not in ("suppressed", "cache"))
    return sums


def added(stacks, key):
    return sum(values.get(key, 0) for _, values in stacks)


def check(wrong, what, passed, *details):
    if not passed:
        wrong.append("%s: %s" % (what, " ".join(str(detail) for detail in details)[:600]))


def attempt(wrong, what, function, *arguments):
    """What a reader answers; its complaint is one of ours."""
    try:
        return function(*arguments)
    except Exception as complaint:  # whatever it is, the file is at fault
        wrong.append("%s: %s %s" % (what, type(complaint).__name__, str(complaint)[:400]))
        return None


def check_stacks(path, report, name):
    sums, wrong = sums_of(report), []
    for value, expected in sums.items():
        stacks = attempt(wrong, "folded", readers.folded, export(path, "--format", "folded", "--value", value)[0])
        check(wrong, "folded " + value, stacks is not None and added(stacks, "folded") == expected, expected)
        first = attempt(wrong, "pprof", readers.pprof, export(path, "--format", "pprof", "--value", value)[0])
        check(wrong, "pprof " + value, first and first[1] == PPROF[value] and added(first[0], PPROF[value]) == expected, expected, first and first[1])
    scope = attempt(wrong, "speedscope", readers.speedscope, export(path, "--format", "speedscope")[0])
    dhat = attempt(wrong, "dhat", readers.dhat, export(path, "--format", "dhat")[0])
    for value, expected in sums.items():
        check(wrong, "speedscope " + value, scope is not None and added(scope, TITLES[value]) == expected, expected)
        check(wrong, "dhat " + value, value not in DHAT or dhat is not None and added(dhat, DHAT[value]) == expected, expected)
    fact(not wrong, name + ": stacks weigh what the report says in folded stacks, speedscope, pprof and DHAT", wrong)
    wrong = []
    shown = {tuple(stack) for stack, _ in readers.pprof(export(path, "--format", "pprof")[0])[0]}
    check(wrong, "same stacks", {tuple(stack) for stack, values in scope} <= shown, shown)
    check(wrong, "as many as sites", len(readers.pprof(export(path, "--format", "pprof")[0])[0]) == len(report["sites"]))
    check(wrong, "calls", {stack[-1] for stack in shown} >= {site["api"] for site in report["sites"] if site["api"].isascii() and HARM not in site["api"]})
    deep = readers.pprof(export(path, "--format", "pprof", "--all-frames")[0])[0]
    check(wrong, "no fewer frames", sum(len(stack) for stack, _ in deep) >= sum(len(stack) for stack, _ in readers.pprof(export(path, "--format", "pprof")[0])[0]))
    fact(not wrong, name + ": the stacks are the same in each, root first, and end in what was called", wrong)


def check_tables(path, report, name):
    wrong, sums = [], sums_of(report)
    for lines in (False, True):
        what = "jsonl" if lines else "csv"
        rows = attempt(wrong, what, readers.table, export(path, "--format", what)[0], lines) or []
        check(wrong, what, len(rows) == len(report["sites"]), len(rows))
        for value, expected in sums.items():
            key = "leaked_bytes" if value == "leaked" else VALUES[value]
            check(wrong, "%s %s" % (what, key), sum(int(row[key]) for row in rows) == expected, expected)
        for row, site in zip(rows, report["sites"]):
            for key in ("id", "live_count", "max_bytes", "freed_count", "lifetime_ns_sum", "first_ns", "last_ns"):
                check(wrong, what, int(row[key]) == site.get(key, 0), key, row)
    fact(not wrong, name + ": CSV and lines have a row for each site, and no formula", wrong)


def check_metrics(path, report, name):
    wrong, sums = [], sums_of(report)
    for what in ("prometheus", "openmetrics"):
        for value in VALUES:
            series = attempt(wrong, what, readers.metrics, export(path, "--format", what, "--value", value)[0], what == "openmetrics") or {}
            unit = "allocations" if value == "count" else "bytes"
            check(wrong, what, sum(series.get("memshim_site_%s_%s" % (value, unit), {}).values()) == sums[value], value, sums[value])
        for key, metric in (("live_bytes", "memshim_device_live_bytes"), ("peak_live_bytes", "memshim_device_peak_live_bytes"),
                            ("reserved_bytes", "memshim_device_pool_bytes"), ("allocated_bytes", "memshim_device_allocated_bytes_total")):
            check(wrong, metric, sum(series[metric].values()) == sum(device.get(key, 0) for device in report["devices"]))
        check(wrong, what, sum(series["memshim_leaked_bytes"].values()) == sums["leaked"])
        check(wrong, what, sum(series["memshim_oom_events_total"].values()) == len(report["oom"]))
        check(wrong, what, sum(series["memshim_owner_peak_bytes"].values()) == sums["peak"])
    fact(not wrong, name + ": Prometheus and OpenMetrics have the figures of devices, owners and sites", wrong)


def apis_of(names):
    """How often each is there."""
    found = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def of_devices(report):
    """Sites of memory of the devices, which a trace has."""
    return [site for site in report["sites"] if site["kind"] not in ("pinned", "registered", "imported")]


def freed_by_api(report):
    """How many blocks of each function went."""
    found = {}
    for site in of_devices(report):
        found[site["api"]] = found.get(site["api"], 0) + site["total_count"] - site["live_count"]
    return {api: count for api, count in found.items() if count}


def check_chrome(path, report, name, trace=None):
    wrong = []
    told = attempt(wrong, "chrome", readers.chrome, export(path, "--format", "chrome", *(["--trace", trace] if trace else []))[0])
    if told:
        for series in report["timeline"]["devices"]:
            row = told["counters"]["%s %d memory" % (series.get("device_api", "cuda"), series["device"])]
            for key in ("live", "reserved", "limbo"):
                check(wrong, key, [args[key] for _, args in row[:-1]] == series[key])
            check(wrong, "times", [round(at * 1000) for at, _ in row[:-1]] == report["timeline"]["t"])
        phases = [row for row in told["slices"] + told["instants"] if row[0] == "phase"]
        check(wrong, "phases", len(phases) == len(report["phases"]) and sum(row[-1]["count"] for row in phases) == sum(row["count"] for row in report["phases"]))
        check(wrong, "oom", len([row for row in told["instants"] if row[0] == "oom"]) == len(report["oom"]))
    if told and trace:
        lines = [line.split() for line in trace_lines(trace) if line[0] != "#"]
        blocks = [row for row in told["slices"] if row[0] == "block"]
        freed = [line for line in lines if line[1] == "f"]
        check(wrong, "blocks", lines and len(blocks) == len(freed) and told["open"] == len(lines) - 2 * len(freed), len(blocks), told["open"])
        check(wrong, "bytes", sum(row[4]["bytes"] for row in blocks) == sum(int(line[3]) for line in freed))
        live = sum(int(line[3]) * (1 if line[1] == "a" else -1) for line in lines)
        check(wrong, "stacks", all(row[4]["stack"] and int(row[4]["address"], 16) >= 0 for row in blocks))
        check(wrong, "stacks of what went", apis_of(row[4]["stack"].split(" < ")[0] for row in blocks) == freed_by_api(report))
        check(wrong, "at the end", sum(row[-1][1]["requested"] for counter, row in told["counters"].items() if counter.endswith(" trace")) == live, live)
    fact(not wrong, name + ": the timeline, phases and out of memory as trace events" + (", and each block of the trace" if trace else ""), wrong)


def on_devices(report):
    """Segments of the devices' memory, with the state of each block."""
    return [segment for segment in report["segments"]
            if not segment["blocks"] or segment["blocks"][0].get("kind", "device") not in ("pinned", "registered", "imported")]


def check_snapshot(path, report, name, trace=None):
    wrong, segments = [], on_devices(report)
    told = attempt(wrong, "snapshot", readers.snapshot, export(path, "--format", "snapshot", *(["--trace", trace] if trace else []))[0])
    if told:
        live = [block for segment in segments for block in segment["blocks"] if block["state"] == "live"]
        shown = [block for segment in told["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"]
        check(wrong, "segments", sorted(segment["total_size"] for segment in told["segments"]) == sorted(segment["bytes"] for segment in segments))
        check(wrong, "blocks", sorted((block["size"], block["requested_size"]) for block in shown) == sorted((block["bytes"], block["requested"]) for block in live))
        entries = [entry for device in told["device_traces"] for entry in device]
        count = {action: sum(entry["action"] == action for entry in entries) for action in ("alloc", "free_completed", "oom", "segment_free")}
        check(wrong, "oom", count["oom"] == len(report["oom"]))
        check(wrong, "appeared and went", count["alloc"] - count["free_completed"] == len(live) and count["segment_free"] <= count["free_completed"], count)
        check(wrong, "stacks", all(block["frames"] and block["frames"][0]["name"] for block in shown))
    if told and trace:
        freed = [int(line.split()[3]) for line in trace_lines(trace) if line[0] != "#" and line.split()[1] == "f"]
        gone = [entry for entry in entries if entry["action"] == "free_completed"]
        check(wrong, "stacks of what went", apis_of(entry["frames"][0]["name"] for entry in gone) == freed_by_api(report))
        check(wrong, "where it lay", count["segment_free"] < len(gone), count)
        check(wrong, "as the trace", freed and sorted(freed) == sorted(entry["size"] for entry in entries if entry["action"] == "free_completed"))
    fact(not wrong, name + ": a snapshot has every segment and block" + (", and every event of the trace" if trace else ""), wrong)


def check_firefox(path, report, name):
    wrong = []
    told = attempt(wrong, "firefox", readers.firefox, export(path, "--format", "firefox", "--value", "live")[0])
    if told:
        stacks, counters, markers = told
        for value, expected in sums_of(report).items():
            check(wrong, value, added(stacks, TITLES[value]) == expected, expected)
        shown = {tuple(stack) for stack, _ in readers.pprof(export(path, "--format", "pprof")[0])[0]}
        check(wrong, "stacks", {tuple(stack) for stack, _ in stacks} <= shown)
        for series in report["timeline"]["devices"]:
            for key in ("live", "reserved"):
                row = counters["%s %d %s" % (series.get("device_api", "cuda"), series["device"], key)]
                check(wrong, key, [value for _, value in row] == series[key] and [round(at * 1e6) for at, _ in row] == report["timeline"]["t"], row)
        check(wrong, "markers", len(markers) == len(report["phases"]) + len(report["oom"]), markers)
    fact(not wrong, name + ": a Firefox profile has a thread for each value, counters and markers", wrong)


def check_all(path, name, trace=None):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    report.setdefault("phases", [])
    check_stacks(path, report, name)
    check_tables(path, report, name)
    check_metrics(path, report, name)
    check_chrome(path, report, name, trace)
    check_snapshot(path, report, name, trace)
    check_firefox(path, report, name)


def by_hand():
    """The report of the command's tests, with a timeline, out of memory, and what no device has."""
    with open(os.path.join(os.environ["top_srcdir"], "tests", "cli", "data", "train.json"), encoding="utf-8") as file:
        report = json.load(file)
    report["timeline"] = {"bucket_ns": 1000, "t": [0, 1000, 2000], "devices": [{"device": 0, "live": [5, 125829120, 7], "reserved": [9, 9, 9], "limbo": [0, 1, 2]}]}
    report["oom"] = [{"t_ns": 1500, "device": 0, "api": "cudaMalloc", "requested": 1, "live": 1, "reserved": 1, "largest_free": 1, "top_sites": [], "cause": cause}
                     for cause in ("limit", "limbo")]
    report["sites"].append(dict(report["sites"][0], id=3, kind="pinned", hash="00000000000000d4", stack=0, rounding_bytes=11))
    report["leaks"].append({"site": 3, "bytes": 5, "count": 1, "class": "suppressed", "first_ns": 1, "last_ns": 1})
    report["phases"] = [{"name": "step", "source": "nvtx", "count": 3, "open": 0, "marks": 0, "first_ns": 10, "last_ns": 2500, "total_ns": 900,
                         "devices": [{"device": 0, "peak_bytes": {"min": 1, "median": 2, "max": 3}}]},
                        {"name": "here", "source": "nvtx", "count": 0, "open": 0, "marks": 1, "first_ns": 10, "last_ns": 10, "total_ns": 0, "devices": []}]
    block = {"offset": 0, "bytes": 1024, "requested": 1000, "state": "live", "site": 0, "api": "cudaMalloc", "kind": "device", "stream": "0x0", "born_ns": 1700}
    report["segments"] = [
        {"device": 0, "address": "0x700000000000", "bytes": 4096, "tier": "run", "backing": "malloc",
         "blocks": [block, {"offset": 1024, "bytes": 1024, "requested": 0, "state": "limbo"}, {"offset": 2048, "bytes": 2048, "requested": 0, "state": "free"}]},
        {"device": 0, "address": "0x600000000000", "bytes": 2048, "tier": "single", "backing": "malloc",
         "blocks": [{"offset": 0, "bytes": 2048, "requested": 0, "state": "pinned"}]},
        {"device": 0, "address": "0x500000000000", "bytes": 512, "tier": "followed", "backing": "vendor", "space": "address", "blocks": [dict(block, bytes=512, requested=512)]},
        {"device": 0, "address": "0x500000000000", "bytes": 512, "tier": "followed", "backing": "vendor", "space": "handle", "blocks": [dict(block, bytes=512, requested=512, kind="handle")]},
        {"device": 0, "address": "0x400000000000", "bytes": 512, "tier": "followed", "backing": "vendor", "space": "address", "blocks": [dict(block, bytes=512, kind="pinned")]}]
    return report


def harmed(report):
    """Every name of the report, and some that begin a formula."""
    report = copy.deepcopy(report)
    for number, frame in enumerate(report["frames"]):
        frame["function"] = ("=cmd|' /C calc'!A0" if number == 0 else "@SUM(1)" if number == 1 else "x" * 1000000 if number == 2 else "") + HARM
        frame["file"] = "-2+3/" + HARM
    for place in (report["run"], *report["devices"], *report["sites"], *report["modules"], *report["oom"], *report["phases"]):
        for key, value in place.items():
            if isinstance(value, str) and key not in ("hash", "build_id", "class", "kind", "source"):
                place[key] = "+" + value + HARM
    for device in report["devices"]:
        device["api"] = "cuda"
    return report


def write(name, report):
    path = os.path.join(TMP, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, ensure_ascii=False)
    return path


def real_program():
    """A program with phases, and its trace; the report with names, as each export would else resolve them anew."""
    report, trace, named = (os.path.join(TMP, name) for name in ("real.json", "real.trace", "named.json"))
    done = subprocess.run([os.path.join(BUILD, "tests", "phases", "phases_user"), "book", "2"], capture_output=True, timeout=200, check=False,
                          env=shim_environment(report, MEMSHIM_TRACE=trace, MEMSHIM_LOG="none", NVTX_INJECTION64_PATH=os.environ["TEST_LIB"]))
    subprocess.run([MEMSHIM, "symbolize", "-o", named, report], capture_output=True, check=False)
    return done.returncode, named, trace


def check_refusals(path):
    wrong = []
    for words, parts in ((["--format", "pdf"], ["'pdf'", "folded"]), ([], ["--format", "pprof"]), (["--format", "csv", "--value", "most"], ["'most'", "peak"]),
                         (["--format", "csv", "--trace", "x"], ["--trace", "csv"]), (["--format", "chrome", "--trace", "missing"], ["missing"])):
        data, said = export(path, *words)
        check(wrong, words, not data and said.count("\n") == 1 and all(part in said for part in parts), said)
    broken = {"not a trace": "1 a 1 1 0\n", "another's": "# memshim 0.1.0: x, process 1\n", "a bad line": "# memshim 0.1.0: x, process 4242\nnonsense\n",
              "backwards": "# memshim 0.1.0: x, process 4242\n5 a 1 1 0\n4 f 1 1 0\n", "no stream": "# memshim 0.1.0: x, process 4242\n5 a 1 1 5000\n"}
    for what, text in broken.items():
        trace = os.path.join(TMP, "broken.trace")
        with open(trace, "w", encoding="utf-8") as file:
            file.write(text)
        data, said = export(path, "--format", "chrome", "--trace", trace)
        check(wrong, what, not data and said.count("\n") == 1 and trace in said, said)
    with open(trace, "w", encoding="utf-8") as file:
        file.write("# memshim 0.1.0: a, process 7, process 4242\n5 a 1 64 0\n6 f 1 6")
    told = attempt(wrong, "cut", readers.chrome, export(path, "--format", "chrome", "--trace", trace)[0])
    check(wrong, "a last line that is not whole ends it", told and told["open"] == 1)
    fact(not wrong, "what is wrong is said in one line", wrong)


def check_broken(path):
    """Segments that no pool ever had: what overlaps or sticks out is left out, and the snapshot holds all the same."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    first = report["segments"][0]
    first["blocks"] += [dict(first["blocks"][0], offset=offset, bytes=size) for offset, size in ((512, 1024), (4000, 4096), (1 << 62, 5), (-5, 10), (0, -1), (3, 0))]
    report["segments"] += [dict(first, address=address, bytes=size) for address, size in
                           (("0x700000000010", 4096), ("0xffffffffffffffff", 64), ("0x0", 64), ("x", 64), ("0x1000", -1), ("0x7000", 1 << 62), ("0x3fffffffffffffff", 1 << 62))]
    wrong = []
    told = attempt(wrong, "broken", readers.snapshot, export(write("broken.json", report), "--format", "snapshot")[0])
    check(wrong, "something is left", told and len(told["segments"]) > 3)
    fact(not wrong, "segments that overlap and blocks that stick out make no broken snapshot", wrong)


def check_twice(path):
    wrong = [what for what in ("folded", "speedscope", "pprof", "chrome", "snapshot", "firefox", "dhat", "prometheus", "openmetrics", "csv", "jsonl")
             if export(path, "--format", what) != export(path, "--format", what)]
    fact(not wrong, "the same report makes the same file", wrong)


plan(25)
hand = by_hand()
check_all(write("hand.json", hand), "by hand")
check_all(write("hostile.json", harmed(hand)), "names made to do harm")
if os.path.exists(os.path.join(BUILD, "tests", "phases", "phases_user")):
    status, real, recorded = real_program()
    fact(status == 0 and os.path.exists(real), "a program with phases ran", [status])
    check_all(real, "a real program", recorded)
else:
    for _ in range(8):
        skip("a real program", "the simulator is not built")
check_refusals(write("hand.json", hand))
check_broken(write("hand.json", hand))
check_twice(write("hand.json", hand))
