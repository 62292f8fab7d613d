#!/usr/bin/env python3
"""memshim merge: 64 made-up ranks of a pipeline, one of which has a leak of its own. It is named with its line, nobody else is; figures are those that are worked out
here; any grouping gives the same bytes (TEST_GROUPINGS of them); what is damaged is refused. 100,000 ranks: scripts/test-merge many."""
import json
import os
import random
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", "merge"), os.path.join(os.environ["top_srcdir"], "tests", "hooks")]
import made  # noqa: E402
from grouping import grouped, memshim, merged  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402
from quoted import misquoted  # noqa: E402

RANKS, OUTLIER = 64, 37
GROUPINGS = int(os.environ.get("TEST_GROUPINGS", "50"))


def figures(job, reports):
    """What of figures is not what it should be."""
    wrong = []
    values = {"peak_bytes": [r["devices"][0]["peak_live_bytes"] for r in reports], "leaked_bytes": [sum(leak["bytes"] for leak in r["leaks"]) for r in reports],
              "calls": [r["devices"][0]["allocated_count"] for r in reports], "reserved_bytes": [r["devices"][0]["peak_live_bytes"] for r in reports]}
    for key, of_ranks in values.items():
        row, low = job["job"]["figures"][key], statistics.median(of_ranks) // 1
        expected = {"min": min(of_ranks), "min_process": of_ranks.index(min(of_ranks)), "median": low, "max": max(of_ranks), "max_process": of_ranks.index(max(of_ranks))}
        at = sorted(range(len(of_ranks)), key=lambda i, of=of_ranks: (of[i], i))[(len(of_ranks) - 1) // 2]
        if row != dict(expected, median_process=at):
            wrong.append("%s: %s, not %s" % (key, row, expected))
        if [rank[key] for rank in job["ranks"]] != of_ranks:
            wrong.append("%s of ranks[]" % key)
    for site in job["job"]["sites"]:
        of_ranks = [s["at_peak_bytes"] for r in reports for s in r["sites"] if s["hash"] == site["hash"]]
        row = site["at_peak_bytes"]
        low = statistics.median(of_ranks) // 1
        if (site["processes"], row["min"], row["max"]) != (len(of_ranks), min(of_ranks), max(of_ranks)) or not low * 63 // 64 <= row["median"] <= low:
            wrong.append("%s: %s of %s" % (site["at"], row, of_ranks))
    return wrong


def named(job, reports):
    """What of owners and phases is not what it should be."""
    wrong = []
    told = {"owners": {}, "phases": {}}
    for i, report in enumerate(reports):
        leaks = {}
        for leak in report["leaks"]:
            owner = report["sites"][leak["site"]]["owner"]
            leaks[owner] = leaks.get(owner, 0) + leak["bytes"]
        for row in report["owners"]:
            told["owners"].setdefault(row["owner"], []).append((i, {"at_peak_bytes": row["at_peak_bytes"], "live_bytes": row["live_bytes"], "leaked_bytes": leaks.get(row["owner"], 0), "growth_bytes": 0}))
        for row in report["phases"]:
            device = row["devices"][0]
            told["phases"].setdefault(row["name"], []).append((i, {"peak_bytes": device["peak_bytes"]["max"], "growth_bytes": device["growth_bytes"]["max"], "count": row["count"], "total_ns": row["total_ns"]}))
    for name, rows in told.items():
        if [row.get("owner", row.get("name")) for row in job["job"][name]] != sorted(rows):
            wrong.append("rows of %s: %s" % (name, [sorted(rows), job["job"][name]]))
        for row in job["job"][name]:
            had = rows[row.get("owner", row.get("name"))]
            if (row["processes"], row["device_bytes"]) != (len(had), reports[0]["devices"][0]["total_bytes"]):
                wrong.append(str(row))
            for key in had[0][1]:
                least, most = min((one[key], i) for i, one in had), min((-one[key], i) for i, one in had)
                low = statistics.median([one[key] for _, one in had]) // 1
                if (row[key]["min"], row[key]["min_process"], row[key]["max"], row[key]["max_process"]) != (*least, -most[0], most[1]) or not low * 63 // 64 <= row[key]["median"] <= low:
                    wrong.append("%s: %s" % (key, row))
    return wrong


def told_names(job):
    """What the text has of owners and phases: of each five, those of which some process had most."""
    text = ""
    for name, key, title in (("owners", "at_peak_bytes", "by owner, at the peak of a device:"), ("phases", "peak_bytes", "by phase, its largest peak:")):
        rows = sorted(job["job"][name], key=lambda row, of=key: -row[of]["max"])
        text += "\n%s\n%12s%12s%12s\n" % (title, "least", "median", "most")
        for row in rows[:5]:
            sizes = ["%.1f MiB" % (row[key][which] / made.MIB) for which in ("min", "median", "max")]
            who = "rank %d" % job["ranks"][row[key]["max_process"]]["rank"]
            has = "" if row["processes"] == RANKS else ", %d processes" % row["processes"]
            text += "%12s%12s%12s %-15s %s%s\n" % (*sizes, who, row.get("owner", row.get("name")), has)
        text += "  and %d more\n" % (len(rows) - 5) if len(rows) > 5 else ""
    return text


def many_names():
    """Phases of more names than are kept, by file and by halves: what is wrong."""
    wrong, paths = [], ["n%d.json" % rank for rank in range(4)]
    names = {rank: ["%05d" % (rank * 400 + i * (rank + 1)) for i in range(900)] for rank in range(4)}
    for rank, path in enumerate(paths):
        report = made.report(rank, 4)
        report["phases"] = [dict(report["phases"][0], name=name) for name in names[rank]]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file)
    whole = merged(paths, "named.json")
    for part in (paths[:2], paths[::2], paths[3:]):
        rest = [path for path in paths if path not in part]
        merged(part, "part.json")
        if merged(["part.json", *rest], "again.json") != whole:
            wrong.append("grouped by %s" % part)
    job, kept = json.loads(whole)["job"], sorted({name for rows in names.values() for name in rows})[:1024]
    if [row["name"] for row in job["phases"]] != kept or job["phases_left_out"] != sum(name not in kept for rows in names.values() for name in rows):
        wrong.append("%d rows, %d left out" % (len(job["phases"]), job["phases_left_out"]))
    status, said, error = memshim("check", "--max-peak", "phase=1G", "named.json")
    if status != 2 or said or "phases_left_out" not in error:
        wrong.append("a limit on all phases: %d %s%s" % (status, said, error))
    if "  and many more\n" not in memshim("merge", "named.json")[1]:
        wrong.append("the text does not say that there are more")
    return wrong


def refusals(path, whole):
    """Damaged job reports, one by one: each is refused in one line."""
    wrong = []
    damages = [("a row of ranks that is none", lambda j: j["job"].update(shown=10 ** 6)), ("a site told by nobody", lambda j: j["job"]["sites"][0].update(told_by=-1)),
               ("a part of a site that is none", lambda j: j["ranks"][3].update(held=[[99, 1]])), ("more processes than there are", lambda j: j["job"]["sites"][0].update(processes=65)),
               ("a bucket beyond all", lambda j: j["job"]["sites"][0]["calls"].update(counts=[[1 << 20, 1]])), ("no ranks", lambda j: j.update(ranks=[])),
               ("a device that is none", lambda j: j["ranks"][3].update(devices=[[7, 1, 1, 1, 1, 1]])), ("an owner of more processes than there are", lambda j: j["job"]["owners"][0].update(processes=65)),
               ("a phase whose most nobody had", lambda j: j["job"]["phases"][0]["peak_bytes"].update(max_process=64)),
               ("an owner's site that is none", lambda j: j["job"]["owners"][0]["at_peak_bytes"].update(site=99, site_bytes=1)),
               ("more parts than are kept", lambda j: j["ranks"][0].update(held=[[0, 1]] * 9))]
    for name, damage in damages:
        job = json.loads(whole)
        damage(job)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job, file)
        status, said, error = memshim("merge", path)
        if status != 2 or said or error.count("\n") != 1:
            wrong.append("%s: %d %s%s" % (name, status, said, error))
    return wrong


def main():
    """Its facts."""
    os.chdir(TMP)
    os.environ["TMPDIR"] = os.path.join(TMP, "between")
    os.mkdir(os.environ["TMPDIR"])
    paths = ["r%d.json" % rank for rank in range(RANKS)]
    for rank, path in enumerate(paths):
        made.write(path, rank, RANKS, OUTLIER)
    reports = [made.report(rank, RANKS, OUTLIER) for rank in range(RANKS)]
    whole = merged(paths, "job.json")
    job = json.loads(whole)
    status, text, error = memshim("merge", "job.json")
    fact(status == 0 and not error, "a job report is merged by itself", [status, error])
    fact([row["processes"] for row in job["job"]["groups"]] == [16] * 4, "each stage is a group", [job["job"]["groups"]])
    out = job["job"]["outliers"]
    fact({row["rank"] for row in out} == {OUTLIER} and {row["figure"] for row in out} == {"peak_bytes", "live_bytes", "leaked_bytes"}, "one stands out, and nobody else", out)
    fact(all(job["job"]["sites"][row["site"]]["at"].startswith("stray at ") for row in out), "by its line", out)
    fact("rank 37 on node0004: leaked 48.0 MiB, its group's median 0 B; 48.0 MiB, elsewhere 0 B, by stray at /src/train.c:19 (cudaMalloc)" in text, "and the text says so", [text])
    wrong = figures(job, reports)
    fact(not wrong, "figures are those worked out here", wrong)
    wrong = named(job, reports)
    fact(not wrong, "so are owners and phases", wrong)
    fact(told_names(job) in text, "and the text has those with most", [told_names(job), text])
    wrong = misquoted("several.md", "memshim merge -o job.json memshim.*.json", text)
    fact(not wrong, "the page has what it prints", [wrong])
    status, said, error = memshim("summary", "job.json")
    fact(status == 0 and said.startswith(text + "\nThe fullest:\n") and "Peak  336.1 MiB allocated" in said, "a summary says so too, and then what the fullest had", [said, error])
    wrong = many_names()
    fact(not wrong, "of more names than are kept the same ones are kept in any grouping, and it is said", wrong)
    done = subprocess.run([os.environ["TEST_VALID"], "job.json"], capture_output=True, text=True, check=False)
    fact(done.returncode == 0, "the job report is valid", [done.stdout, done.stderr])
    status, said, error = memshim("leaks", "job.json")
    fact(status == 0 and "stray" in said and "64 processes merged" in error, "other verbs read it as the fullest's, and say so", [said, error])
    dice = random.Random(int(os.environ.get("TEST_SEED", "21")))
    different = [i for i in range(GROUPINGS) if grouped(paths, dice, "g%d" % i) != whole]
    fact(not different, "%d random groupings give the same bytes" % GROUPINGS, different)
    with open("list", "w", encoding="utf-8") as file:
        file.write("\n".join(reversed(paths)) + "\n")
    status, _, error = memshim("merge", "-f", "-o", "listed.json", "--files-from", "list")
    with open("listed.json", "rb") as file:
        fact(status == 0 and file.read() == whole, "so does a list of files", [error])
    for rank in range(80):
        made.write("u%d.json" % rank, rank, 80, None, ranked=False)
    by_tree = merged(["u%d.json" % rank for rank in range(80)], "tree.json")
    half = [merged(["u%d.json" % rank for rank in part], "half%d.json" % i) for i, part in enumerate((range(1, 80, 2), range(0, 80, 2)))]
    fact(half and merged(["half0.json", "half1.json"], "halves.json") == by_tree, "more than 64 files are merged by a tree; processes without a rank too")
    fact(not os.listdir(os.environ["TMPDIR"]), "the tree's files are gone", os.listdir(os.environ["TMPDIR"]))
    status, said, error = memshim("merge", paths[0], paths[1], paths[0])
    fact(status == 2 and "process 1000 of node0000 is in two of the reports" in error, "a process that comes twice is refused", [said, error])
    status, said, error = memshim("merge", paths[0], "missing.json")
    fact(status == 2 and "missing.json" in error and error.count("\n") == 1, "so is a file that is not there", [said, error])
    wrong = refusals("damaged.json", whole)
    fact(not wrong, "and job reports that are damaged", wrong)
    status, said, error = memshim("merge")
    fact(status == 2 and "no report" in error, "and no report at all", [error])
    plan(21)


if __name__ == "__main__":
    if os.access(MEMSHIM, os.X_OK):
        main()
    else:
        print("1..0 # SKIP the memshim command is not built")
