#!/usr/bin/env python3
"""The Python package, by the standard library alone: reports of every schema so far and of today, the program's own line as the command
tells it, sizes as the variables have them, and files that are no reports. And on every Python from 3.9 on that is here."""
import copy
import csv
import io
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader  # noqa: E402
from reader import fact, raised  # noqa: E402

reader.need_command()
import interpreters  # noqa: E402
import memshim  # noqa: E402
from memshim.report import parse_report  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND, TMP = os.environ["TEST_BIN"], os.environ["TEST_TMP"]
MIB = 1 << 20
ROWS = ("run", "devices", "sites", "leaks", "stacks", "timeline", "phases", "moments", "held", "ranks", "tool_version")


def everything(report):
    """All rows of a report, and all that is told of its stacks."""
    rows = [getattr(report, name) for name in ROWS]
    return rows, [report.line(node.stack) for node in report.stacks], [report.frames(site.stack) for site in report.sites], report._repr_html_()


def same_as_json(report):
    """Whether the rows have what the file has, counted another way."""
    data = report.data
    device = {row["index"]: row["peak_live_bytes"] for row in data["devices"]} == {row.device: row.peak_live_bytes for row in report.devices}
    sites = [(row["id"], row["live_bytes"], row.get("requested_bytes")) for row in data["sites"]] == [
        (row.site, row.live_bytes, row.requested_bytes) for row in report.sites
    ]
    parts = [list(row["peak_parts"].values()) for row in data["devices"]] == [list(row.peak_parts) for row in report.devices]
    leaks = sum(row["bytes"] for row in data["leaks"]) == sum(row.bytes for row in report.leaks)
    times = [t for _ in data["timeline"]["devices"] for t in data["timeline"]["t"]] == [row.t_ns for row in report.timeline]
    phases = [row["count"] for row in data.get("phases", [])] == [row.phase_count for row in report.phases]
    moments = data["timeline"].get("moments", [])
    held = [(row["id"], moments[at], amount) for row in data["sites"] for at, amount in row.get("held", [])] == list(report.held)
    return all((device, sites, parts, leaks, times, phases, held, report.moments == tuple(moments)))


def known_program(report, has_phases):
    """train.py: 8 MiB loaded, of which 2 MiB stay, and steps of 1 to 4 MiB; one request that is too much."""
    peak = [device.peak_live_bytes for device in report.devices] == [12 * MIB]
    leaks = sum(leak.bytes for leak in report.leaks) == 2 * MIB
    phases = {phase.name: (phase.phase_count, [device.peak_max_bytes for device in phase.devices]) for phase in report.phases}
    wanted = {"load": (1, [8 * MIB]), "step": (4, [12 * MIB])} if has_phases else {}
    return peak and leaks and phases == wanted and sum(site.at_peak_bytes for site in report.sites) == 12 * MIB


def versions(today):
    """Facts of each report."""
    kept = reader.kept_reports()
    for path in kept:
        report = memshim.read(path)
        ok = same_as_json(report) and known_program(report, "phases" in report.data) and everything(report)
        fact(ok, "the report of %s has the figures that its file has, and those of its program" % os.path.basename(path)[:-5])
    fact(len(kept) >= 4 and "phases" not in memshim.read(kept[0]).data and memshim.read(kept[0]).sites[0].requested_bytes is None,
         "what an early memshim did not write is None, or nothing")
    fact(same_as_json(today) and known_program(today, True), "the report of today's likewise")
    fact(today.held and today.moments and not today.ranks, "and says what sites held at its moments")
    subprocess.run([COMMAND, "merge", "-o", os.path.join(TMP, "job.json"), today.path], stdout=subprocess.DEVNULL, check=True)
    job = memshim.read(os.path.join(TMP, "job.json"))
    done = subprocess.run([os.environ["TEST_VALID"], *reader.kept_reports(), today.path, job.path], capture_output=True, text=True, check=False)
    fact(done.returncode == 0, "and all of them hold to the schema", [done.stdout, done.stderr])
    rank = job.ranks[0]
    fact(len(job.ranks) == 1 and (rank.pid, rank.peak_bytes, rank.oom_count) == (today.run.pid, 12 * MIB, len(today.data["oom"])) and rank.leaked_bytes == 2 * MIB,
         "a job report's processes are rows", [job.ranks])
    device = today.devices[0]
    fact(rank.growth_bytes == 0 and [tuple(row) for row in rank.devices] == [("0", device.total_bytes, 12 * MIB, 2 * MIB, 0, device.peak_parts.stranded_bytes, device.peak_held_bytes)],
         "with what each had on its devices", [rank])
    earlier = {**job.data, "ranks": [{key: value for key, value in row.items() if key not in ("growth_bytes", "devices")} for row in job.data["ranks"]]}
    older = memshim.Report(earlier).ranks[0]
    fact((older.growth_bytes, older.devices, older.peak_bytes) == (None, None, 12 * MIB), "which an earlier memshim did not write", [older])
    refused = [raised(memshim.ReportError, lambda wrong=wrong: memshim.Report({**job.data, "ranks": [{**job.data["ranks"][0], "devices": wrong}]}).ranks)
               for wrong in (0, [0], [[1, 0, 0, 0, 0, 0]], [[-1, 0, 0, 0, 0, 0]], [[0, 0, 0, 0, 0]], [[0, 0, 0, 0, 0, "1"]])]
    fact(all(refused), "and is refused where it is damaged", [refused])
    train = memshim.read(os.path.join(reader.TOP, "tests", "cli", "data", "train.json"))
    fact(same_as_json(train) and everything(train), "and the one that the command's own tests read")


def own_lines(today):
    """The line of each site, against the command's."""
    said = subprocess.run([COMMAND, "export", "--format", "csv", "-o", "-", today.path], capture_output=True, text=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(said)))
    theirs = sorted((row["function"], row["file"], row["line"]) for row in rows)
    lines = [today.line(site.stack) for site in today.sites]
    ours = sorted((one.function or "", one.file or "", str(one.line or "")) for one in lines)
    fact(theirs == ours and theirs, "each site's own line is the one that the command tells",
         ["theirs %s" % theirs, "ours %s" % ours])
    lines_of = open(os.path.join(HERE, "train.py"), encoding="utf-8").read().splitlines()
    wanted = {number + 1 for number, line in enumerate(lines_of) if "runtime.cudaMalloc(" in line}
    fact({one.line for one in lines} == wanted, "and it is the line of the source", ["%s, not %s" % ([one.line for one in lines], wanted)])
    names = {
        "void std::vector<int, A<b>>::push_back(int const&) const [clone .cold]": "std::vector::push_back",
        "rmm::mr::pool<U>::allocate(unsigned long)": "rmm::mr::pool::allocate",
        "operator new(unsigned long)": "operator new",
        "std::ostream& operator<< <int>(std::ostream&)": "operator<< ",
        "main": "main",
        "(anonymous namespace)::grow(int)": "(anonymous namespace)::grow",
    }
    from memshim.lines import cxx_function

    bad = [(name, cxx_function(name)) for name, wanted in names.items() if cxx_function(name) != wanted]
    fact(not bad, "functions of C++ are told by their names", bad)


def sizes():
    """What is a size, against the command; and how many bytes it is."""
    texts = ["0", "512", "1K", "1k", "24MB", "24mib", "1.5G", "2T", "50%", "100%", "101%", "none", "", "K", "1.5", "1.", ".5G", "-1", "1X",
             "1KK", "1KiBx", "None", "16777215T", "16777216T", "18446744073709551615", "18446744073709551616", "\u0661K", "1_000", "+5", "0x10"]
    wrong = []
    for text in texts:
        done = subprocess.run([COMMAND, "run", "--", "true"], env=dict(os.environ, MEMSHIM_LIMIT=text), capture_output=True, check=False)
        # An empty variable is not there.
        if text and (done.returncode == 2) != bool(raised(ValueError, memshim.parse_size, text)):
            wrong.append((text, done.returncode))
    fact(not wrong, "the same texts are sizes as in MEMSHIM_LIMIT", wrong)
    wanted = {"24 MB": 24 * MIB, "24MB": 24 * MIB, "1.5G": 3 << 29, " 1 KiB ": 1024, "0 B": 0, "0.3K": 307, "512": 512, 77: 77}
    found = {text: memshim.parse_size(text).bytes for text in wanted}
    fact(found == wanted and memshim.parse_size("25%").of(1000) == 250 and memshim.parse_size("none").of(1000) is None,
         "sizes are so many bytes, and shares so much of the device", [found])
    said = raised(ValueError, memshim.parse_size, "lots")
    fact("'lots'" in said and "24 MB" in said and "\n" not in said and all(raised(ValueError, memshim.parse_size, bad) for bad in (-1, True, 1.5, None)),
         "what is no size is named, with what is allowed", [said])
    spelled = [memshim.format_size(n) for n in (0, 1023, 1024, 1536, MIB - 1, 12 << 30, 1 << 63)]
    fact(spelled == ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "12.00 GiB", "8.00 EiB"], "and people see them as memshim's command has them", [spelled])


def no_reports(today):
    """Files that are no reports, or that somebody made with care."""
    texts = {
        "": "no report", "[]": "no object", "{}": "schema_version is None", '{"schema_version": "2.0"}': "'2.0', not 1.x", "{": "no report",
        '{"schema_version": "1.0", "x": NaN}': "NaN", "[" * 100000: "nested too deeply", "1" * 5000: "no report", '{"schema_version": 1.0}': "not 1.x",
    }
    wrong = [(text[:40], said) for text, part in texts.items()
             for said in [raised(memshim.ReportError, parse_report, text.encode(), "x\n.json")] if part not in said or "\n" in said or "x\\n.json" not in said]
    fact(not wrong and raised(memshim.ReportError, parse_report, b"\xff\xfe"), "what is no report is told in one line that names it", wrong)
    hostile = copy.deepcopy(dict(today.data))
    name = "<script>alert(1)</script>\u202e\x1b[31m\ud800$x$"
    for row in hostile["frames"]:
        row["function"] = row["file"] = name
    hostile["run"]["host"] = hostile["devices"][0]["name"] = hostile["sites"][0]["api"] = name
    report = parse_report(json.dumps(hostile).encode(), name)
    page = report._repr_html_()
    fact("<script" not in page and "\x1b" not in page and "\u202e" not in page and "&lt;script&gt;" in page and page.encode("utf-8"),
         "hostile names stay text in a notebook", [page[:300]])
    fact("\ufffd" in report.run.host and report.run.host.encode("utf-8"), "and half a surrogate is no text")
    seed, wrong = int(os.environ.get("TEST_SEED", "1")), []
    choice = random.Random(seed)
    for number in range(300):
        data = copy.deepcopy(dict(today.data))
        damage(data, choice)
        try:
            everything(parse_report(json.dumps(data).encode(), "damaged"))
        except memshim.ReportError:
            pass
        except Exception as error:  # pylint: disable=broad-except
            wrong.append("seed %d, number %d: %r" % (seed, number, error))
    fact(not wrong, "300 damaged reports are read, or refused by a ReportError", wrong)
    around = copy.deepcopy(dict(today.data))
    around["stacks"][-1][0] = len(around["stacks"]) - 1
    everything(parse_report(json.dumps(around).encode(), "around"))
    fact(True, "a stack that is its own caller ends")


def damage(value, choice):
    """Puts something else somewhere below."""
    while True:
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not places:
            return
        place = choice.choice(places)
        if isinstance(value[place], (dict, list)) and value[place] and choice.random() < 0.85:
            value = value[place]
            continue
        if choice.random() < 0.3:
            del value[place]
        else:
            value[place] = choice.choice([None, -1, 1 << 70, 1.5, True, "x", [], {}, [[0, 0]], {"site": -1}, "\u202e", [1, 2, 3]])
        return


def same_files():
    """What the package has of the tree is what the tree has."""
    for ours, theirs in (("LICENSE", "LICENSE"), ("memshim/fold.def", "src/report/analyse/fold.def")):
        texts = [open(path, "rb").read() for path in (os.path.join(reader.PACKAGE, ours), os.path.join(reader.TOP, theirs))]
        fact(texts[0] == texts[1], "python/%s is %s" % (ours, theirs), ["copy it: cp %s python/%s" % (theirs, ours)])
    from memshim.lines import _STARTUP

    with open(os.path.join(reader.TOP, "src", "report", "analyse", "fold.c"), encoding="utf-8") as file:
        names = re.search(r"bool ms_fold_is_startup\(.*?names\[\] = \{(.*?)\};", file.read(), re.DOTALL).group(1)
    fact(set(re.findall(r'"([^"]*)"', names)) == _STARTUP, "the functions that programs start in are those of fold.c", [names])
    said = subprocess.run([COMMAND, "version"], capture_output=True, text=True, check=True).stdout
    fact(memshim.__version__ in said.split()[1:2], "the package has memshim's version", [memshim.__version__, said])


def every_python():
    """The package where other interpreters are."""
    program = ("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import memshim\n"
               "reports = memshim.load(sys.argv[2:]); print(sum(s.total_bytes for r in reports for s in r.sites), len(reports[1:]), reports._repr_html_() != '')\n"
               "try: reports.sites\nexcept memshim.MissingPackage as error: print(error)")
    answers, missing = {}, []
    for version in interpreters.VERSIONS:
        command = interpreters.find(version)
        if not command:
            missing.append(version)
            continue
        done = subprocess.run([*command, "-I", "-c", program, reader.PACKAGE, *reader.kept_reports()], capture_output=True, text=True, check=False)
        answers[version] = (done.stdout.splitlines() or [""])[0] if done.returncode == 0 else done.stderr
    fact(answers and len(set(answers.values())) == 1 and all("True" in one for one in answers.values()),
         "reads the same on %s" % ", ".join(answers), [answers])
    print("# not here: %s" % ", ".join(missing))


def main():
    """The test."""
    today = memshim.read(reader.record(os.path.join(HERE, "train.py"), os.path.join(TMP, "today.json"), MEMSHIM_TIMELINE="16"))
    reader.plan(len(reader.kept_reports()) + 26)
    versions(today)
    own_lines(today)
    sizes()
    no_reports(today)
    same_files()
    every_python()


main()
