#!/usr/bin/env python3
"""memshim check of a job report: limits hold for each of 64 made-up ranks by itself, as they do for the reports that were merged, and who breaks one is named, in text, JSON,
JUnit and SARIF. One has a leak of its own (tests/merge/made.py)."""
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("merge", "hooks")]
import made  # noqa: E402
from grouping import memshim, merged  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402
from quoted import misquoted  # noqa: E402

RANKS, OUTLIER = 64, 37
MIB = 1 << 20
PATHS = ["r%d.json" % rank for rank in range(RANKS)]


def changed(rank):
    """The report of a rank: some have a second device, which is smaller, and a pool."""
    report = made.report(rank, RANKS, OUTLIER)
    report["devices"][0].update(peak_reserved_bytes=400 * MIB, peak_parts=dict(made.PARTS, stranded=rank * MIB))
    if rank % 2:
        report["devices"].append(dict(report["devices"][0], index=1, total_bytes=4 << 30, peak_live_bytes=rank * MIB, live_bytes=0, peak_reserved_bytes=100 * MIB, peak_parts=made.PARTS))
    if rank == 20:
        report["sites"][0]["grew_bytes"] = 7 * MIB
    return report


def judged(*words):
    """(exit status, checks) of memshim check --json."""
    status, said, error = memshim("check", "--json", *words)
    if status == 2:
        raise RuntimeError(error)
    return status, json.loads(said)["checks"]


def alike(limit):
    """Whether the job and its reports, one by one, break a limit in the same ranks; "" or what differs."""
    option, value = limit
    status, checks = judged(option, value, "job.json")
    each = judged(option, value, *PATHS)
    ranks = sorted((check["rank"], check["name"], check["bytes"], check["allowed_bytes"]) for check in checks if not check["held"])
    expected = sorted((int(check["file"][1:-5]), check["name"], check["bytes"], check["allowed_bytes"]) for check in each[1] if not check["held"])
    if limit[1].startswith(("owner", "phase")):  # of these the rank with most stands for all
        most = {}
        for one in expected:
            if one[1] not in most or one[2] > most[one[1]][2]:
                most[one[1]] = one
        expected = sorted(most.values())
    if status != each[0] or ranks != expected or any(check["of_processes"] < 1 for check in checks):
        return "%s %s: %d %s, not %d %s" % (option, value, status, ranks, each[0], expected)
    return ""


LIMITS = [("--max-peak", "300M"), ("--max-peak", "241M"), ("--max-peak", "3%"), ("--max-peak", "device:1=1%"), ("--max-peak", "400M"), ("--max-leak", "0"), ("--max-leak", "48M"),
          ("--max-leak", "device=47M"), ("--max-growth", "0"), ("--max-growth", "device:0=7M"), ("--max-frag", "60M"), ("--max-frag", "15%"), ("--max-frag", "device:1=0"),
          ("--max-reserved", "399M"), ("--max-reserved", "4%"), ("--max-peak", "owner=176M"), ("--max-peak", "owner:NCCL=1%"), ("--max-leak", "owner:program=1M"),
          ("--max-growth", "owner:optimizer=1M"), ("--max-peak", "phase:step=300M"), ("--max-growth", "phase=250K"), ("--max-growth", "phase=1G")]


def forms():
    """What JUnit and SARIF lack."""
    wrong = []
    status, said, error = memshim("check", "--max-leak", "0", "--max-peak", "300M", "--junit", "junit.xml", "--sarif", "job.sarif", "job.json")
    line = "FAILED  leaked of rank 37 on node0004: 48.0 MiB, allowed 0 B (--max-leak 0)\n        48.0 MiB by stray at /src/train.c:19\n"
    if status != 1 or line not in said or "FAILED  peak of device 0 of rank 37 on node0004: 336.1 MiB, allowed 300.0 MiB" not in said:
        wrong.append("text: %d %s%s" % (status, said, error))
    suites = ElementTree.parse("junit.xml").getroot()
    cases = {case.get("name"): case for case in suites.iter("testcase")}
    case = cases.get("leaked of rank 37 on node0004 (--max-leak 0)")
    if case is None or case.get("file") != "/src/train.c" or case.get("line") != "19" or case.find("failure") is None or "stray" not in case.find("failure").text:
        wrong.append("JUnit: %s" % sorted(cases))
    with open("job.sarif", encoding="utf-8") as file:
        results = json.load(file)["runs"][0]["results"]
    leak = next(result for result in results if result["ruleId"] == "memshim/leak")
    place = leak["locations"][0]["physicalLocation"]
    if len(results) != 2 or place["artifactLocation"]["uri"] != "file:///src/train.c" or place["region"]["startLine"] != 19 or "rank 37 on node0004" not in leak["message"]["text"]:
        wrong.append("SARIF: %s" % results)
    return wrong


def owners_and_phases():
    """What a limit of an owner, or a phase, is blamed on is what the report of that process is blamed on, also where that is in no list of what each process held most of."""
    wrong = []
    for limit in (("--max-peak", "phase:step=300M"), ("--max-peak", "phase:stage 3=1M"), ("--max-growth", "phase:stage 3=1K"), ("--max-peak", "owner:NCCL=1M"), ("--max-leak", "owner:program=1M"), ("--max-growth", "owner:optimizer=1M")):
        check = next(check for check in judged(*limit, "job.json")[1] if not check["held"])
        own = next(one for one in judged(*limit, "r%d.json" % check["rank"])[1] if not one["held"])
        text = [line for line in memshim("check", *limit, "job.json")[1].splitlines() if " by " in line]
        each = [line for line in memshim("check", *limit, "r%d.json" % check["rank"])[1].splitlines() if " by " in line]
        if (check.get("site_bytes"), text) != (own["site_bytes"], each) or len(each) != 1:
            wrong.append("%s: %s %s, not %s %s" % (limit, check, text, own, each))
    return wrong


def elsewhere():
    """A rank whose site the shown process does not have is blamed by the line that job.sites has."""
    status, _, error = memshim("check", "--max-peak", "owner:NCCL=1M", "--sarif", "nccl.sarif", "job.json")
    with open("nccl.sarif", encoding="utf-8") as file:
        results = json.load(file)["runs"][0]["results"]
    status2, said, _ = memshim("check", "--max-peak", "device:0=240M", "job.json")
    wrong = [] if status == 1 and len(results) == 1 and results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] in (15, 16) else [status, results, error]
    if status2 != 1 or "of rank 2 on node0000" not in said or "embed_grad at /src/train.c:12" not in said:
        wrong.append(said)
    return wrong


def baselines():
    """A baseline of a job is that of its reports, and holds both."""
    wrong = []
    memshim("check", "--baseline", "job.base", "--update-baseline", "job.json")
    memshim("check", "--baseline", "each.base", "--update-baseline", *PATHS)
    rows = [{(row["figure"], row["of"], row["name"]): row["bytes"] for row in json.load(open(path, encoding="utf-8"))["figures"]} for path in ("job.base", "each.base")]
    if rows[0] != rows[1]:
        wrong.append("rows: %s" % [set(rows[0].items()) ^ set(rows[1].items())])
    for words in (("job.base", "job.json"), ("job.base", *PATHS), ("each.base", "job.json")):
        status, said, error = memshim("check", "--baseline", *words)
        if status:
            wrong.append("%s: %d %s%s" % (words[0], status, said, error))
    path = "grown.json"
    report = changed(11)
    report["devices"][0]["peak_live_bytes"] += 150 * MIB
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    merged([path if rank == 11 else PATHS[rank] for rank in range(RANKS)], "grown-job.json")
    status, said, error = memshim("check", "--baseline", "job.base", "grown-job.json")
    if status != 1 or "FAILED  peak of device 0 of rank 11 on node0001" not in said or said.count("FAILED") != 1:
        wrong.append("grown: %d %s%s" % (status, said, error))
    return wrong


def many():
    """Of very many that break a rule the worst are named, and how many more there are is said."""
    paths = ["m%d.json" % rank for rank in range(70)]
    for rank, path in enumerate(paths):
        made.write(path, rank, 70)
    merged(paths, "many.json")
    status, said, error = memshim("check", "--max-peak", "1M", "many.json")
    return [] if status == 1 and said.count("FAILED") == 64 and said.count("; 6 more processes do not keep it") == 1 and "64 of 64 checks failed" in said else [status, said, error]


def page():
    """What docs/user/check.md quotes of such a job."""
    os.mkdir("page")
    paths = [os.path.join("page", path) for path in PATHS]
    for rank, path in enumerate(paths):
        made.write(path, rank, RANKS, OUTLIER)
    merged(paths, "page/job.json")
    words = "check --max-peak 300M --max-leak owner:NCCL=0 "
    return misquoted("check.md", "memshim " + words + "job.json", memshim(*words.split(), "page/job.json")[1].replace("page/", ""))


def main():
    """Its facts."""
    os.chdir(TMP)
    for rank, path in enumerate(PATHS):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(changed(rank), file)
    merged(PATHS, "job.json")
    wrong = [line for line in map(alike, LIMITS) if line]
    fact(not wrong, "%d limits are broken by the same ranks in the job report as in the reports" % len(LIMITS), wrong)
    wrong = forms()
    fact(not wrong, "text, JUnit and SARIF name rank and line", wrong)
    wrong = owners_and_phases()
    fact(not wrong, "of owners and phases too", wrong)
    wrong = elsewhere()
    fact(not wrong, "so they do where the process that is shown does not have the call site", wrong)
    wrong = baselines()
    fact(not wrong, "a baseline of the job is that of its reports", wrong)
    wrong = many()
    fact(not wrong, "of many that break a rule 64 are named", wrong)
    wrong = page()
    fact(not wrong, "the page has what it prints", [wrong])
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    for rank in job["ranks"]:
        del rank["devices"]
    with open("old.json", "w", encoding="utf-8") as file:
        json.dump(job, file)
    status, said, error = memshim("check", "--max-peak", "1G", "old.json")
    fact(status == 2 and not said and "merge the reports again" in error, "a job report that lacks what is checked is refused, and does not pass", [status, said, error])
    plan(8)


if __name__ == "__main__":
    if os.access(MEMSHIM, os.X_OK):
        main()
    else:
        print("1..0 # SKIP the memshim command is not built")
