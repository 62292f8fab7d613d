"""Reports that the tests of the page are made for: a large one, and a hostile one.

Usage: reports.py large|hostile FILE SITES BASE
"""

import json
import random
import sys

GIB = 1 << 30
OWNERS = ["train", "libtorch_cuda.so", "libnccl.so.2", "libcublas.so.12", "libstuff.so"]


def frame(module, pc, function, file, line):
    """A native frame that has its names."""
    return {"kind": "native", "module": module, "rel_pc": hex(pc), "function": function, "file": file, "line": line}


def add_stacks(report, sites, chance):
    """A tree of stacks with so many leaves, 8 to 24 frames deep; returns the leaves."""
    for i in range(max(200, sites // 5)):
        report["frames"].append(frame(i % len(OWNERS), 4096 + 16 * i, f"ns{i % 7}::function_{i}<float>(Tensor const&, int)", f"/src/dir{i % 40}/file{i % 500}.cpp", 1 + i % 900))
    inner = [[0, -1]]
    depths = [0]
    while len(inner) < max(20, sites // 3):
        parent = chance.randrange(max(0, len(inner) - 400), len(inner))
        while depths[parent] >= 22:
            parent = inner[parent][0]
        inner.append([parent, chance.randrange(len(report["frames"]))])
        depths.append(depths[parent] + 1)
    report["stacks"] = inner
    leaves = []
    for _ in range(sites):
        leaves.append(len(inner))
        inner.append([chance.randrange(len(inner) // 2, len(inner)) if len(inner) > 40 else len(inner) - 1, chance.randrange(len(report["frames"]))])
    return leaves


def a_site(number, stack, chance, ends_ns):
    """A site whose figures agree with each other."""
    size = 1 << chance.randrange(9, 24)
    count = 1 + int(chance.paretovariate(1.1)) % 5000
    live = chance.choice([0, 0, 0, 1, 2]) if count > 2 else 0
    peak = min(count, live + chance.randrange(3))
    first = chance.randrange(ends_ns // 2)
    return {"id": number, "hash": f"{number:016x}", "stack": stack, "device": 0, "api": chance.choice(["cudaMalloc", "cudaMallocAsync", "cuMemAlloc_v2"]), "kind": "device",
            "total_bytes": size * count, "total_count": count, "live_bytes": size * live, "live_count": live, "at_peak_bytes": size * peak, "max_bytes": size * max(peak, live),
            "freed_count": count - live, "lifetime_ns_sum": 1000 * (count - live), "rounding_bytes": 0, "requested_bytes": size * count, "size_hist": {str(size): count},
            "first_ns": first, "last_ns": first + 1000}


def add_held(report, moments, chance):
    """What the sites held at the moments: to the end what is live, some others at one of them."""
    for site in report["sites"]:
        first = next((i for i, ns in enumerate(moments) if ns > site["first_ns"]), None)
        if site["live_bytes"] and first is not None:
            site["held"] = [[first, site["live_bytes"]]]
        elif first is not None and first + 1 < len(moments) and site["at_peak_bytes"] and chance.randrange(4) == 0:
            site["held"] = [[first, site["at_peak_bytes"]], [first + 1, 0]]


def add_segments(report, segments, blocks, chance):
    """A pool that is half full: live blocks of the sites, limbo, and what is free between."""
    live = [site["id"] for site in report["sites"] if site["live_count"]] or [0]
    for i in range(segments):
        rows = []
        offset = 0
        for _ in range(blocks):
            size = 512 * chance.randrange(1, 64)
            state = chance.choice(["live", "live", "free", "limbo"])
            row = {"offset": offset, "bytes": size, "requested": size - 100 if state == "live" else 0, "state": state}
            if state == "live":
                row.update(site=chance.choice(live), api="cudaMalloc", kind="device", stream="0x0", thread=1, context="0x1", born_ns=1000 * i)
            rows.append(row)
            offset += size
        report["segments"].append({"device": 0, "address": hex(0x7f0000000000 + i * (4 << 20)), "bytes": offset, "tier": "run", "backing": "malloc", "space": "pointer", "context": "0x1",
                                   "pinned": False, "blocks_left_out": 0, "blocks": rows})


def large(base, sites, buckets=2048, segments=10000, blocks=8):
    """So many sites, buckets and segments."""
    chance = random.Random(20)
    report = json.loads(json.dumps(base))
    report["modules"] = [{"id": i, "path": f"/opt/lib/{name}", "generation": 0, "owner": "other", "build_id": f"{i:040x}"} for i, name in enumerate(OWNERS)]
    report["frames"], report["segments"], report["leaks"], report["findings"], report["oom"] = [], [], [], [], []
    ends_ns = 60 * 10**9
    leaves = add_stacks(report, sites, chance)
    report["sites"] = [a_site(i, leaves[i], chance, ends_ns) for i in range(sites)]
    add_segments(report, segments, blocks, chance)
    peak = sum(site["at_peak_bytes"] for site in report["sites"])
    live = sum(site["live_bytes"] for site in report["sites"])
    report["leaks"] = [{"site": site["id"], "bytes": site["live_bytes"], "count": site["live_count"], "class": "at_exit", "first_ns": site["first_ns"], "last_ns": site["last_ns"], "device": 0,
                        "kind": "device", "died_with_context_bytes": 0} for site in report["sites"] if site["live_count"]]
    shape = [int(peak * (0.2 + 0.7 * abs(((i * 37) % 200) / 200 - 0.5) * 2)) for i in range(buckets)]
    shape[buckets // 3] = peak
    moments = [(i + 1) << 32 for i in range(ends_ns >> 32)]
    add_held(report, moments, chance)
    report["timeline"] = {"bucket_ns": ends_ns // buckets, "moments": moments, "t": [i * (ends_ns // buckets) for i in range(buckets)],
                          "devices": [{"device": 0, "live": shape, "reserved": [value + value // 8 for value in shape], "limbo": [value // 16 for value in shape]}]}
    report["devices"][0].update(total_bytes=8 * peak, peak_live_bytes=peak, live_bytes=live, peak_ns=(buckets // 3) * (ends_ns // buckets) + 5, peak_reserved_bytes=peak + peak // 8)
    report["oom"] = [{"t_ns": ends_ns // 2, "device": 0, "api": "cudaMalloc", "requested": GIB, "cause": "fragmentation", "live": shape[buckets // 2], "reserved": peak, "largest_free": GIB // 2,
                      "top_sites": [{"site": i, "bytes": 1 << 20} for i in range(5)], "stack": leaves[0]}]
    report["phases"] = [{"name": name, "source": "nvtx", "count": 10, "open": 0, "marks": 0, "first_ns": first * ends_ns // 10, "last_ns": last * ends_ns // 10, "total_ns": ends_ns // 10, "devices": [
        {"device": 0, "count": 10, "peak_bytes": {"min": peak // 4, "median": peak // 3, "max": peak // 2}, "peak_ns": ends_ns // 3, "growth_bytes": {"min": 0, "median": 0, "max": 4096, "total": 8192},
         "trend_bytes": 12, "allocated_bytes": 1 << 30, "allocated_count": 100, "freed_bytes": 1 << 30, "freed_count": 99, "sites": [{"site": 0, "bytes": 77}]}]}
        for name, first, last in (("load", 0, 1), ("warm up", 1, 3), ("step", 3, 9), ("save", 9, 10))]
    report["run"]["end_unix_ns"] = report["run"]["start_unix_ns"] + ends_ns
    return report


# What a browser, a terminal or a tool could take for something else than text.
NASTY = ["</script><script>window.hacked=1</script>", "<img src=x onerror=\"window.hacked=2\">", "]]><!--", "</div></main></style>", "\u202egnp.exe", "a\u0000b".replace("\u0000", "\u0001"),
         "\u001b[31mred", "javascript:window.hacked=3", "&lt;b&gt;&amp;", "'\"`${window.hacked=4}", "=cmd|'/C calc'!A0", "\ufeff\u2028\u2029", "__proto__", "constructor", "", " "]


def hostile(base):
    """Every text of a report is one of these, and one is a megabyte long."""
    report = large(base, 60, 64, 20, 4)
    texts = NASTY + ["<b>" + "x" * (1 << 20)]
    state = {"next": 0}

    def nasty(keep):
        state["next"] += 1
        return texts[state["next"] % len(texts)] + (keep if state["next"] % 3 else "")

    known = {"api", "state", "kind", "device_api", "rel_pc", "address", "tier", "class", "schema_version", "source", "severity", "confidence", "stream", "context", "hash", "end_reason", "build_id", "space",
             "backing", "lines", "uuid", "cause", "rule", "value"}

    def spoil(value, key=""):
        if isinstance(value, dict):
            return {name: spoil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item, key) for item in value]
        return nasty(value) if isinstance(value, str) and (key not in known or key == "cause") else value

    report["findings"] = [{"rule": "double_free", "severity": "error", "confidence": "exact", "bytes": 9007199254740993, "message": "m", "advice": "a", "site": 0, "device": 0, "t_ns": 5, "count": 2, "stack": 5}]
    report["diagnostics"] = ["d"] * 20
    report["coverage"]["blind_spots"] = ["b"] * 20
    report["sites"][0]["total_bytes"] = report["sites"][0]["requested_bytes"] = 9007199254740993
    for name in ("tool",):
        report[name] = {key: value for key, value in report[name].items()}
    spoiled = spoil({key: value for key, value in report.items() if key != "tool"})
    spoiled["tool"] = report["tool"]
    for i, site in enumerate(spoiled["sites"]):
        site["api"] = texts[i % len(texts)] + "call"
    return spoiled


def main():
    """See above."""
    what, path = sys.argv[1:3]
    with open(sys.argv[4], encoding="utf-8") as file:
        base = json.load(file)
    report = hostile(base) if what == "hostile" else large(base, int(sys.argv[3]))
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
