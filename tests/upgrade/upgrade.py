#!/usr/bin/env python3
"""What an earlier memshim wrote is read by this one: a report (schema 1.0) by every verb, with the figures that it has; a trace without
sites and addresses; and a ledger, if it is of today's format, else it is refused with one line that has both numbers. The files are of
the simulator's training program under memshim b36344f64b2c: a run, and one that was killed."""
import json
import lzma
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402

HERE = os.path.join(os.path.realpath(os.environ["top_srcdir"]), "tests", "upgrade")
VERBS = [["summary"], ["summary", "--all"], ["leaks"], ["frag"], ["phases"], ["owners"], ["peak"], ["findings"], ["contexts"], ["oom"], ["tree"], ["flamegraph"], ["timeline"],
         ["validate"], ["suppress"], ["check", "--max-peak", "1G"], ["symbolize", "-f", "-o", "names.json"], ["html", "-f", "-o", "page.html"]]
FORMATS = ["folded", "speedscope", "pprof", "chrome", "snapshot", "firefox", "dhat", "prometheus", "openmetrics", "csv", "jsonl"]


def memshim(*words):
    return subprocess.run([MEMSHIM, *words], capture_output=True, text=True, errors="replace", check=False, timeout=100)


def said(*words):
    """What a verb says as JSON."""
    done = memshim(*words)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def unpack(name):
    with lzma.open(os.path.join(HERE, name + ".xz")) as packed, open(name, "wb") as file:
        file.write(packed.read())


def check_report():
    with open("report.json", encoding="utf-8") as file:
        report = json.load(file)
    failed = []
    for words in VERBS:
        done = memshim(*words, "report.json")
        if done.returncode != 0 or "error" in done.stderr:
            failed.append([words, done.returncode, done.stderr])
    for name in FORMATS:
        done = memshim("export", "--format", name, "-f", "-o", "exported", "report.json")
        if done.returncode != 0 or not os.path.getsize("exported"):
            failed.append([name, done.returncode, done.stderr])
    fact(not failed, "an earlier report: every verb and every format takes it", failed)
    leaked = sum(row["bytes"] for row in report["leaks"] if row["class"] not in ("suppressed", "cache"))
    device = report["devices"][0]
    told = {"leaks": said("leaks", "--json", "report.json").get("leaked_bytes"), "peak": said("peak", "--json", "report.json"), "frag": said("frag", "--json", "report.json")}
    fact(told["leaks"] == leaked > 0 and told["frag"]["devices"][0]["peak_reserved_bytes"] == device["peak_reserved_bytes"] and str(device["peak_live_bytes"]) in json.dumps(told["peak"]),
         "and has the figures that were in it", [told])
    change = said("diff", "--json", "report.json", "report.json")
    merged = memshim("merge", "-f", "-o", "job.json", "report.json")
    fact(change and merged.returncode == 0 and said("summary", "--json", "job.json"), "it is compared, and merged into a job", [change, merged.stderr])


def check_trace():
    with open("run.trace", encoding="utf-8") as file:
        blocks = sum(line.split()[1] == "a" for line in file if not line.startswith("#"))
    done = memshim("export", "--format", "chrome", "--trace", "run.trace", "-f", "-o", "run.chrome", "report.json")
    with open("run.chrome", encoding="utf-8") as file:
        begun = sum(row.get("ph") == "b" for row in json.load(file)["traceEvents"])
    fact(done.returncode == 0 and begun == blocks > 0, "an earlier trace: each of its blocks is in the export", [done.stderr, begun, blocks])
    done = memshim("export", "--format", "snapshot", "--trace", "run.trace", "-f", "-o", "run.pickle", "report.json")
    fact(done.returncode == 0, "and in a snapshot", [done.stderr])
    done = memshim("frag", "--trace", "run.trace", "report.json")
    fact(done.returncode == 2 and done.stderr.count("\n") == 1 and "earlier version" in done.stderr, "what it does not say is told in one line", [done.stdout, done.stderr])


def check_ledger():
    with open("killed.ledger", "rb") as file:
        header = file.read(12)
    version = int.from_bytes(header[8:12], sys.byteorder)
    done = memshim("recover", "-o", "recovered.json", "killed.ledger")
    if done.returncode == 0:
        fact(said("summary", "--json", "recovered.json"), "an earlier ledger of format %d becomes a report" % version)
    else:
        fact(done.returncode == 2 and not os.path.exists("recovered.json") and done.stderr.count("\n") == 1 and "has format %d of the ledger, this memshim reads " % version in done.stderr,
             "a ledger of another format is refused in one line that has both", [version, done.returncode, done.stderr])
    fact(os.path.exists("killed.ledger"), "and is still there")


plan(8)
os.chdir(TMP)
for packed_name in ("report.json", "run.trace", "killed.ledger"):
    unpack(packed_name)
check_report()
check_trace()
check_ledger()
