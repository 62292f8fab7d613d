"""scripts/bench pool, replay, random, runahead, shapes, schedules and stacks: the form that scripts rely on, and figures that are known beforehand. Short runs; prints TAP."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests/python"))
import interpreters  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
TMP = os.environ["TEST_TMP"]
KEYS = {
    "pool": ["allocator", "case", "threads", "p50_ns", "p99_ns", "pairs_per_s", "cpu_ns_per_pair", "events_per_1000_frees", "device_syncs",
             "vendor_calls", "counted_pairs"],
    "replay": ["allocator", "trace", "live_peak_bytes", "reserved_peak_bytes", "reserved_over_live", "least_capacity_bytes",
               "least_capacity_over_live", "vendor_calls", "vendor_calls_tight", "device_syncs", "ns_per_event",
               "cpu_ns_per_event"],
    "random": ["allocator", "max_mib", "operations", "ns_per_op", "cpu_ns_per_op", "live_peak_bytes", "reserved_peak_bytes", "reserved_over_live",
               "vendor_calls", "failures"],
    "runahead": ["allocator", "asked_ahead_ms", "ahead_ms", "live_peak_bytes", "in_flight_peak_bytes", "reserved_peak_bytes",
                 "reserved_over_live", "limbo_bytes_at_peak", "limbo_waits", "events", "device_syncs", "vendor_calls",
                 "seconds_over_stream", "wrong"],
    "shapes": ["allocator", "shape", "streams", "live_peak_bytes", "largest_bytes", "reserved_peak_bytes", "reserved_over_live", "limbo_bytes_at_peak",
               "events", "vendor_calls", "seconds"],
    "schedules": ["program", "rule", "schedules_per_second", "steps_per_second", "steps_per_schedule"],
    "stacks": ["way", "interpreter", "frames", "ns", "added_ns"],
}
KEYS["async"] = KEYS["pool"]
FACTS = []


def fact(holds, name):
    """One line of TAP."""
    FACTS.append((bool(holds), name))


def bench(name, *arguments):
    """The rows of one bench, with a fact about its form."""
    command = [os.path.join(os.environ["top_srcdir"], "scripts/bench"), name, *arguments, "--json", "--no-build", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "BUILD_DIR": os.environ["top_builddir"]})
    fact(done.returncode == 0, f"{name} runs: " + done.stderr.strip().replace("\n", " "))
    report = json.loads(done.stdout) if done.returncode == 0 else {"rows": []}
    fact(list(report) == ["name", "machine", "rows"] and report["name"] == name, f"{name}: its JSON has a name, a machine and rows")
    fact(report["rows"] and all(list(row) == KEYS[name] for row in report["rows"]), f"{name}: every row has the same keys")
    return report["rows"]


def look_at_pool():
    """Cases and threads; native's calls are known."""
    rows = bench("pool", "--milliseconds", "2", "--cases", "hit,mix100", "--threads", "1", "--variant",
                 "deep:MEMSHIM_STACK_DEPTH=128,MEMSHIM_LOG=none")
    rows += bench("pool", "--milliseconds", "2", "--cases", "cross_thread,miss", "--threads", "2", "--variant",
                  "deep:MEMSHIM_STACK_DEPTH=128,MEMSHIM_LOG=none")
    names = ["native", "memshim", "memshim-stacks-off", "memshim-track", "memshim-deep"]
    cases = [("hit", 1), ("mix100", 1), ("cross_thread", 2), ("miss", 2)]
    fact([(r["case"], r["threads"], r["allocator"]) for r in rows] == [(*c, n) for c in cases for n in names],
         "pool: a row for each case, number of threads and allocator")
    fact(all(r["p50_ns"] > 0 and r["p99_ns"] > 0 and r["pairs_per_s"] > 0 and r["cpu_ns_per_pair"] > 0 for r in rows), "pool: every figure is a time")
    native = [r for r in rows if r["allocator"] == "native" and r["case"] in ("hit", "mix100")]
    fact(native and all(r["vendor_calls"] == 2 * r["counted_pairs"] and r["device_syncs"] == r["counted_pairs"] and
                        r["counted_pairs"] >= 20000 and r["events_per_1000_frees"] == 0 for r in native),
         "pool: natively each pair is two calls and a wait")
    fact(all(r["vendor_calls"] >= (1 if r["allocator"].startswith("memshim") else 256) for r in rows if r["case"] == "miss"),
         "pool: a miss is a call, or part of a larger one")


def look_at_async():
    """What is freed on its own stream needs no event, and what is freed on another few; the driver is called for neither."""
    rows = bench("async", "--milliseconds", "2", "--threads", "1")
    names = ["native", "memshim", "memshim-stacks-off"]
    fact([(r["case"], r["allocator"]) for r in rows] == [(case, name) for case in ("hit", "cross_stream", "many_streams") for name in names],
         "async: a row for each case and allocator")
    ours = [r for r in rows if r["allocator"] == "memshim"]
    fact(all(r["vendor_calls"] < 100 for r in ours), "async: the driver's pool is seldom asked")
    fact(all(r["events_per_1000_frees"] == 0 for r in ours if r["case"] != "cross_stream"), "async: no event on a stream of one's own")
    fact(all(0 < r["events_per_1000_frees"] < 100 for r in ours if r["case"] == "cross_stream"), "async: one for many frees on another")


def look_at_replay():
    """A trace whose figures can be told in the head, and one of ours."""
    path = TMP + "/known.trace"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"# known\n1 a 1 {3 * MIB} 0\n\n2 a 9 {2 * MIB} 0\n3 f 1 {3 * MIB} 0\n4 a 3 {2 * MIB} 0\n5 a 4 1000 0\n6 f 9 {2 * MIB} 0\n")
    kept = os.path.join(os.environ["top_srcdir"], "tests/traces/training.trace.xz")
    rows = bench("replay", path, "--async", "--held") + bench("replay", kept)
    fact([r["allocator"] for r in rows if r["trace"] == "known.trace"][-4:] == ["native-async", "memshim-async", "native-held", "memshim-held"],
         "replay: and in the order of streams")
    fact({r["trace"] for r in rows} == {"known.trace", "training.trace"}, "replay: a trace is named by its file, compressed or not")
    native = [r for r in rows if r["allocator"] == "native"]
    known = native and native[0]
    fact(known and known["live_peak_bytes"] == 5 * MIB, "replay: the live peak is that of what was asked for")
    fact(known and known["reserved_peak_bytes"] == 6 * MIB and known["least_capacity_bytes"] == 6 * MIB,
         "replay: natively as much is taken, and needed, as the device's granularity says")
    fact(known and known["vendor_calls"] == 6 and known["device_syncs"] == 2 and known["vendor_calls_tight"] is None,
         "replay: natively each event is a call, and too small a device is found out")
    ours = [r for r in rows if r["allocator"] == "memshim" and r["trace"] == "known.trace"]
    fact(ours and ours[0]["reserved_peak_bytes"] == 6 * MIB and ours[0]["vendor_calls"] == 5,
         "replay: the pool's first call of the driver's is for the program already, and what it gives back is a call too")
    fact(all(r["live_peak_bytes"] == native[1]["live_peak_bytes"] and r["least_capacity_bytes"] >= r["live_peak_bytes"] and
             r["reserved_peak_bytes"] >= r["live_peak_bytes"] for r in rows if r["trace"] == "training.trace"),
         "replay: nobody needs less than is alive")
    for text in ("1 a 1 10\n", "1 f 1 10 0\n", "x\n"):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        done = subprocess.run([os.environ["top_builddir"] + "/tests/bench/alloc/alloc", "runtime", "replay", path], capture_output=True,
                              text=True, check=False, env={**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"]})
        fact(done.returncode == 1 and done.stderr.count("\n") == 1, f"replay: {text.strip()!r} is no trace")


def look_at_random():
    """The recipe stays below its cap."""
    rows = bench("random", "--limits", "1,64", "--operations", "1000", "--cap", "512")
    fact([(r["allocator"], r["max_mib"]) for r in rows] ==
         [(name, limit) for limit in (1, 64) for name in ("native", "memshim", "memshim-track")], "random: a row for each size and allocator")
    fact(all(r["failures"] == 0 and 0 < r["live_peak_bytes"] <= 512 * MIB and r["reserved_peak_bytes"] >= r["live_peak_bytes"] and
             r["ns_per_op"] > 0 for r in rows), "random: what is alive stays below the cap")


def look_at_runahead():
    """What was freed and is still in use is memory: up to the bound of it under the fence."""
    rows = bench("runahead", "--ahead", "150", "--iterations", "10")
    named = {row["allocator"]: row for row in rows}
    fact(list(named) == ["native", "memshim", "native-async", "memshim-async", "native-hip", "memshim-hip"], "runahead: a row for each way to allocate")
    fact(all(row["wrong"] == 0 for row in rows), "runahead: every block holds what was written last")
    fence = named.get("memshim")
    fact(fence and fence["limbo_bytes_at_peak"] <= 48 * MIB, "runahead: of what is in flight no more is in limbo than may be, and the largest block")
    fact(fence and fence["reserved_peak_bytes"] <= 1.25 * fence["live_peak_bytes"], "runahead: the fence keeps what is live, and little more")


def look_at_shapes():
    """One shape on one stream: natively nothing but what is live is reserved."""
    rows = bench("shapes", "--cases", "loop", "--threads", "1")
    named = {row["allocator"]: row for row in rows}
    fact(list(named) == ["native", "memshim", "native-async", "memshim-async"], "shapes: a row for each way to allocate")
    fact(all(row["live_peak_bytes"] == 32 * MIB and row["largest_bytes"] == 16 * MIB for row in rows), "shapes: what is live is known")
    fact(named and named["native"]["reserved_peak_bytes"] == 32 * MIB, "shapes: natively no more is reserved")


def look_at_stacks():
    """Native ones of each depth; two rows for each interpreter that is here."""
    rows = bench("stacks", "--milliseconds", "5")
    fact(all(row["ns"] > 0 for row in rows), "stacks: every figure is a time")
    fact([row["frames"] for row in rows if row["way"] == "rules+intern"] == [8, 16, 64], "stacks: native ones are of each depth")
    python = [(row["interpreter"], row["frames"], row["added_ns"] is not None) for row in rows if row["way"].startswith("python")]
    found = [version for version in interpreters.VERSIONS if interpreters.find(version)]
    fact(found and python == [(version, 28, True) for version in found for _ in range(2)], "stacks: of Python, each interpreter that is here")


def look_at_schedules():
    """A row for each rule of the programs that are named."""
    rows = bench("schedules", "lock", "--milliseconds", "5")
    fact([(row["program"], row["rule"]) for row in rows] == [("lock", rule) for rule in ("random", "pct", "weak")], "schedules: a row for each rule")
    fact(all(row["steps_per_second"] > row["schedules_per_second"] > 0 for row in rows), "schedules: every figure is a rate")


def main():
    """All of them."""
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP figures mean nothing under a sanitizer")
        return
    look_at_pool()
    look_at_async()
    look_at_replay()
    look_at_random()
    look_at_runahead()
    look_at_shapes()
    look_at_stacks()
    look_at_schedules()
    print(f"1..{len(FACTS)}")
    for number, (holds, name) in enumerate(FACTS, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    sys.exit(not all(holds for holds, _ in FACTS))


main()
