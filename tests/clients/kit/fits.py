"""Holds `memshim fit` against what a program does: sizes that it was not told of, PyTorch's settings, and the least device of each way, on which the program ends, and a granule below which it
does not."""
import glob
import json
import os

GRANULE = 2 << 20
MOST_OFF = {"sizes": 3.0, "settings": 1.0}  # percent
SETTINGS = ("expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4", "large_segment_size_mb:64")
WAYS = {"PyTorch": {}, "PyTorch, expandable_segments:True": {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
        "PyTorch without its cache, memshim's pool": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}}


def recorded(bench, client, one, size):
    """The report of a run at this size, with its trace beside it."""
    outcome = bench.run("track", [*bench.words(client, one), size], {**one.variables, "MEMSIM_MEMORY": "64G"})
    if outcome.status:
        raise RuntimeError(outcome.err[-2000:])
    return glob.glob(os.path.join(outcome.place, "*.json"))[0]


def fit(bench, *words):
    """What it says."""
    return json.loads(bench.say("fit", "--json", *words))


def reserved(outcome):
    """What the program says that PyTorch reserved."""
    return next((int(line.split()[1]) for line in outcome.out.splitlines() if line.startswith("reserved ")), 0)


def look_at_sizes(bench, sizes, reports, played):
    """The first two tell the others."""
    known = ["--sized", "%s=%s" % (sizes[0], reports[0]), "--sized", "%s=%s" % (sizes[1], reports[1])]
    for size, report in zip(sizes[2:], reports[2:]):
        off = fit(bench, "--device", "24G", *known, "--sized", "%s=%s" % (size, report))["off_percent"]
        played.fact([] if abs(off) < MOST_OFF["sizes"] else ["off by %.2f %%" % off], "a size of %s is told from %s and %s" % (size, sizes[0], sizes[1]), ["off by %.2f %%" % off])


def look_at_settings(bench, client, one, size, report, played):
    """A real run with each of them."""
    for settings in SETTINGS:
        told = fit(bench, "--policy", settings, report)["ways"][-1]["reserved_bytes"]
        outcome = bench.run(None, [*bench.words(client, one), size], {**one.variables, "PYTORCH_ALLOC_CONF": settings, "MEMSIM_MEMORY": "64G"})
        seen = reserved(outcome)
        off = 100 * (told / seen - 1) if seen else 100
        played.fact([] if abs(off) < MOST_OFF["settings"] else ["told %d, seen %d" % (told, seen), outcome.err[-500:]], "what %s reserves is told" % settings, ["off by %.2f %%" % off])


def look_at_edges(bench, client, one, size, report, played):
    """On the least device, and on one that is a granule smaller."""
    for way in fit(bench, report)["ways"]:
        least, most = way["least_device_bytes"], way["least_device_most_bytes"]  # by the order of threads
        mode = "pool" if "pool" in way["way"] else None
        most += GRANULE if mode else 0  # threads of the backward pass take turns by chance
        ends = [bench.run(mode, [*bench.words(client, one), size], {**one.variables, **WAYS[way["way"]], "MEMSIM_MEMORY": str(memory)}).status == 0 for memory in (most, least - GRANULE)]
        played.fact([] if ends == [True, False] else ["it ends: %s" % ends], "%s: %d to %d MiB are the least" % (way["way"], least >> 20, most >> 20))


def play(bench, client, played):
    """All of a client: PROGRAM SIZE SIZE SIZE... in the table."""
    for one in client.fits:
        sizes, one.arguments = one.arguments, []
        reports = [recorded(bench, client, one, size) for size in sizes]
        look_at_sizes(bench, sizes, reports, played)
        look_at_settings(bench, client, one, sizes[0], reports[0], played)
        look_at_edges(bench, client, one, sizes[0], reports[0], played)
