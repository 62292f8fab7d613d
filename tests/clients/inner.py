"""The inner layer of the running program, as `memshim snapshot` sees it from outside; natively there is none to be asked."""
import json
import os
import subprocess
import tempfile

LIBRARY = [path for path in os.environ.get("LD_PRELOAD", "").split(":") if os.path.basename(path) == "libmemshim.so"]


def ask(*words):
    """What the command makes, as JSON; it is no part of the program that is looked at."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "report.json")
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run([os.path.join(os.path.dirname(LIBRARY[0]), "memshim"), *words[:1], "-o", path, *words[1:]], env=environment, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError("memshim %s: %s" % (words[0], done.stderr))
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def snapshot():
    """The report of this moment."""
    return ask("snapshot", str(os.getpid()))


def figures(report, heap):
    """Of a report: what lives of that heap, and at most and altogether of all: bytes, count, most, all."""
    rows = [row for row in report.get("heaps", []) if row["name"] == heap]
    devices = report.get("inner_devices", [])
    return (sum(row["live_bytes"] for row in rows), sum(row["live_count"] for row in rows), sum(device["peak_live_bytes"] for device in devices),
            sum(device["allocated_bytes"] for device in devices))
