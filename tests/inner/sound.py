#!/usr/bin/env python3
"""memshim validate adds up the lists of tensors: of two sound reports each list is damaged in turn, and the place is named."""
import copy
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from innerlib import play, read  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, native_environment, plan  # noqa: E402


def bump(*path, by=1):
    """A damage: one figure is another."""
    def damage(report):
        place = report
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] += by
    return damage


def drop(name):
    def damage(report):
        del report[name]
    return damage


def more_than_blocks(report):
    """Tensors that agree with each other, and are more than the device's blocks."""
    device, site = report["inner_devices"][0], report["inner_sites"][0]
    beyond = report["devices"][0]["peak_live_bytes"]
    for row, keys in ((device, ("peak_live_bytes", "allocated_bytes", "peak_held_bytes")), (site, ("at_peak_bytes", "max_bytes", "total_bytes"))):
        for key in keys:
            row[key] += beyond


def nowhere(report):
    report["findings"].append({"rule": "growth", "severity": "warning", "confidence": "exact", "bytes": 1, "message": "", "advice": "", "inner_site": 99})


def series(report):
    report["inner_timeline"]["devices"][0]["live"].append(0)


def held(report):
    report["inner_sites"][0].setdefault("held", []).extend([[1, 0], [1, 0]])


# In the report of "torch" some pieces stay; that of "grow" has phases.
DAMAGES = [
    ("torch", bump("inner_devices", 0, "live_bytes"), "$.inner_devices[0].live_bytes is "),
    ("torch", bump("inner_devices", 0, "live_count"), "$.inner_devices[0].live_count is "),
    ("torch", bump("inner_devices", 0, "peak_live_bytes"), "$.inner_devices[0].peak_live_bytes is "),
    ("torch", bump("inner_devices", 0, "allocated_bytes"), "$.inner_devices[0].allocated_bytes is "),
    ("torch", bump("inner_devices", 0, "allocated_count"), "$.inner_devices[0].allocated_count is "),
    ("torch", bump("inner_devices", 0, "held_bytes", by=1 << 40), "$.inner_devices[0].held_bytes is "),
    ("torch", bump("inner_devices", 0, "cached_bytes"), "$.inner_devices[0].cached_bytes is "),
    ("torch", bump("inner_devices", 0, "peak_held_bytes", by=-(1 << 40)), "$.inner_devices[0].peak_live_bytes is "),
    ("torch", more_than_blocks, "$.inner_devices[0].peak_live_bytes is "),
    ("torch", bump("heaps", 0, "live_bytes"), "$.heaps "),
    ("torch", bump("heaps", 0, "cached_bytes"), "$.heaps[0].cached_bytes is "),
    ("torch", bump("heaps", 0, "peak_reserved_bytes", by=-(1 << 40)), "$.heaps[0].reserved_bytes is "),
    ("torch", bump("inner_sites", 0, "id"), "$.inner_sites[0].id is "),
    ("torch", bump("inner_sites", 0, "stack", by=1000000), "$.inner_sites[0].stack is "),
    ("torch", bump("inner_sites", 0, "total_count", by=1), "$.inner_sites[0].total_count is "),
    ("torch", held, "$.inner_sites[0].held has moment "),
    ("torch", bump("inner_leaks", 0, "bytes"), "$.inner_leaks[0].bytes is "),
    ("torch", bump("inner_leaks", 0, "site", by=77), "$.inner_leaks[0].site is "),
    ("torch", bump("inner_segments", 0, "blocks", 1, "offset"), "$.inner_segments[0].blocks.offset is "),
    ("torch", bump("inner_segments", 0, "bytes"), "$.inner_segments[0].bytes is "),
    ("torch", series, "$.inner_timeline.devices[0].live is "),
    ("torch", nowhere, "$.findings["),
    ("grow", bump("phases", 0, "inner_devices", 0, "peak_bytes", "min", by=1 << 40), "$.phases[0].inner_devices.peak_bytes.min is "),
    ("grow", lambda report: report["phases"][0]["inner_devices"][0]["sites"].append({"site": 99, "bytes": 1}), "$.phases[0].inner_devices.sites is 99, which names none"),
] + [("torch", drop(name), "$ has other lists of tensors, but no %s" % name) for name in
     ("heaps", "inner_devices", "inner_sites", "inner_leaks", "inner_segments", "inner_timeline")]


def elsewhere(row):
    """All that is of device 0 is of device 1, as in the process of a second rank."""
    for key, value in row.items() if isinstance(row, dict) else enumerate(row):
        if key in ("device", "index") and value == 0:
            row[key] = 1
        elif isinstance(value, (dict, list)):
            elsewhere(value)


def complaints(report):
    path = os.path.join(TMP, "changed.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    done = subprocess.run([MEMSHIM, "validate", path], env=native_environment(), text=True, capture_output=True, check=False)
    return [line.removeprefix(path + ": ") for line in done.stdout.splitlines()] + done.stderr.splitlines()


plan(3 + len(DAMAGES))
sound = {"torch": read(play("torch", "2")[1]), "grow": read(play("grow")[1])}
for name, whole in sound.items():
    fact(not complaints(whole), "the report of %s is sound" % name, complaints(whole))
moved = copy.deepcopy(sound["torch"])
elsewhere(moved)
fact(not complaints(moved), "so is that of a process with device 1 alone", complaints(moved))
for name, damage, said in DAMAGES:
    changed = copy.deepcopy(sound[name])
    damage(changed)
    told = complaints(changed)
    fact(any(line.startswith(said) for line in told), "found: %s" % said, told)
