"""Reports of ranks that nobody ran, for memshim merge: small, whole, and valid by the schema. What a rank does follows from its number alone."""
import json

MIB = 1 << 20
HEAD = {
    "schema_version": "1.0", "tool": {"name": "memshim", "version": "0.1.0", "commit": "000000000000"}, "config": [], "pools": [], "segments": [],
    "timeline": {"bucket_ns": 1, "t": [], "devices": []}, "oom": [], "findings": [], "diagnostics": [],
    "coverage": {"routes": {"exported": 0, "dlsym": 0, "get_proc_address": 0}, "divergent": 0, "unseen_frees": 0, "late_frees": 0, "blind_spots": []},
    "overhead": {"calls": 0, "report_ns": 0, "ledger_bytes": 0, "dropped_events": 0, "dropped_stacks": 0},
}
PARTS = {"requested": 0, "rounding": 0, "limbo": 0, "cached": 0, "stranded": 0, "pinned": 0}
# Every stage of the pipeline has the optimizer's state in common, and places of its own.
PLACES = ["optimizer", "embed", "embed_grad", "attention", "attention_grad", "experts", "experts_grad", "head", "head_grad", "stray"]
# Who owns them, by place, as the command tells by their modules; the program has the others.
MODULES = [("/src/train", "program", "program"), ("/opt/lib/libnccl.so.2", "nccl", "NCCL"), ("/opt/site-packages/optimizer/step.so", "unknown", "optimizer")]
MODULE = {0: 2, 5: 1, 6: 1}
STAGES = [(0, 1, 2), (0, 3, 4), (0, 5, 6), (0, 7, 8)]


def held(rank, ranks, outlier):
    """{place: (bytes at peak, bytes leaked, calls)}; ranks of a stage differ a little."""
    stage = STAGES[rank * len(STAGES) // ranks]
    sites = {place: ((64 + 16 * i) * MIB + (rank * 37 + place) % 11 * 4096, 0, 10 + (rank * 7 + place) % 5) for i, place in enumerate(stage)}
    if rank == outlier:
        sites[9] = (96 * MIB, 48 * MIB, 3)
    return sites


def owners(sites):
    """owners[] of these."""
    rows = {}
    for site in sites:
        row = rows.setdefault(site["owner"], {"owner": site["owner"], "memory": "device", "device": 0, "at_peak_bytes": 0, "live_bytes": 0, "live_count": 0, "total_bytes": 0, "total_count": 0, "sites": 0})
        for key in ("at_peak_bytes", "live_bytes", "live_count", "total_bytes", "total_count"):
            row[key] += site[key]
        row["sites"] += 1
    return [rows[name] for name in sorted(rows)]


def phases(rank, peak):
    """phases[]: two that all have, and one of each rank's stage with some memory that stays."""
    def phase(name, most, growth, count):
        spread = {"min": most, "median": most, "max": most}
        return {"name": name, "source": "nvtx", "count": count, "open": 0, "marks": 0, "first_ns": 1, "last_ns": 9, "total_ns": 1000 * count + rank,
                "devices": [{"device": 0, "count": count, "peak_bytes": spread, "peak_ns": 1, "growth_bytes": {"min": 0, "median": 0, "max": growth, "total": growth}, "trend_bytes": 0,
                             "allocated_bytes": most, "allocated_count": 1, "freed_bytes": most - growth, "freed_count": 1, "sites": [{"site": 0, "bytes": most}]}]}
    return [phase("step", peak, 0, 10 + rank % 3), phase("load", peak // 2, 0, 1), phase("stage %d" % (rank % 4), peak // 4, rank * 4096, 2)]


def report(rank, ranks, outlier=None, ranked=True):
    """The report of one of them."""
    sites, leaks = [], []
    for place, (peak, leaked, calls) in sorted(held(rank, ranks, outlier).items()):
        sites.append({"id": len(sites), "hash": "%016x" % (0xabc0 + place), "stack": place + 1, "device": 0, "api": "cudaMalloc", "kind": "device", "owner": MODULES[MODULE.get(place, 0)][2], "total_bytes": peak, "total_count": calls,
                      "live_bytes": leaked, "live_count": int(leaked > 0), "at_peak_bytes": peak, "max_bytes": peak, "lifetime_ns_sum": 0, "rounding_bytes": 0, "size_hist": {"1048576": calls}})
        if leaked:
            leaks.append({"site": len(sites) - 1, "bytes": leaked, "count": 1, "class": "at_exit", "first_ns": 1, "last_ns": 1})
    peak, live = sum(site["at_peak_bytes"] for site in sites), sum(site["live_bytes"] for site in sites)
    run = {"argv": ["./train"], "exe": "/src/train", "cwd": "/src", "host": "node%04d" % (rank // 8), "pid": 1000 + rank % 8, "ppid": 1, "rank": rank, "start_unix_ns": 1700000000000000000 + rank,
           "end_unix_ns": 1700000003200000000, "end_reason": "exit", "exit_code": 0, "complete": True, "symbolized": True}
    if not ranked:
        del run["rank"]
    device = {"index": 0, "api": "cuda", "name": "made", "total_bytes": 8 << 30, "granularity_bytes": 2 * MIB, "live_bytes": live, "live_count": len(leaks), "peak_live_bytes": peak, "peak_ns": 1,
              "reserved_bytes": 0, "peak_reserved_bytes": 0, "followed_bytes": live, "reserved_parts": PARTS, "peak_parts": PARTS, "vendor_calls": 0, "vendor_calls_saved": 0,
              "allocated_count": sum(site["total_count"] for site in sites)}
    whole = {"schema_version": HEAD["schema_version"], "tool": HEAD["tool"], "run": run, "devices": [device], "apis": [],
             "modules": [{"id": i, "path": path, "build_id": "0011223%d" % i, "generation": 0, "owner": owner} for i, (path, owner, _) in enumerate(MODULES)],
             "frames": [{"kind": "native", "module": MODULE.get(i, 0), "rel_pc": hex(0x1000 + i), "function": name, "file": "/src/train.c", "line": 10 + i} for i, name in enumerate(PLACES)],
             "stacks": [[0, -1]] + [[0, i] for i in range(len(PLACES))], "sites": sites, "leaks": leaks, "owners": owners(sites), "phases": phases(rank, peak)}
    whole.update((key, value) for key, value in HEAD.items() if key not in whole)
    return whole


def write(path, *arguments, **keywords):
    """A file of one."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report(*arguments, **keywords), file)
