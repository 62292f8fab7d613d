#!/usr/bin/env python3
"""The Python package with pandas, matplotlib and Dask: tables of the tests' reports, pictures, lists of files, and a large report
(TEST_SITES call sites; scripts/test-python asks for 100,000). Skipped where scripts/test-python has not installed them."""
import json
import os
import pickle
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader  # noqa: E402
from reader import fact, raised  # noqa: E402

reader.need_command()
reader.again_with_packages()
import pandas  # noqa: E402
import memshim  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TMP = os.environ["TEST_TMP"]
SITES = int(os.environ.get("TEST_SITES", "5000"))
MIB = 1 << 20


def tables(files):
    """Each table over all reports, against their files."""
    reports = memshim.load(files)
    data = [report.data for report in reports]
    wanted = {
        "devices": sum(len(one["devices"]) for one in data),
        "sites": sum(len(one["sites"]) for one in data),
        "stacks": sum(len(one["stacks"]) - 1 for one in data),
        "timeline": sum(len(one["timeline"]["t"]) * len(one["timeline"]["devices"]) for one in data),
        "phases": sum(len(phase["devices"]) or 1 for one in data for phase in one.get("phases", [])),
        "leaks": sum(len(one["leaks"]) for one in data),
    }
    found = {name: len(getattr(reports, name)) for name in memshim.TABLES}
    fact(found == wanted and all(found.values()), "each table has the rows of all files", ["%s, not %s" % (found, wanted)])
    live = reports.sites.groupby("report")["live_bytes"].sum().to_dict()
    fact(live == {path: sum(site["live_bytes"] for site in one["sites"]) for path, one in zip(files, data)}, "whose live bytes add up to the files'")
    leaked = reports.leaks.groupby("report")["bytes"].sum().to_dict()
    fact(leaked == {path: sum(leak["bytes"] for leak in one["leaks"]) for path, one in zip(files, data)} and "line" in reports.leaks, "as leaks do")
    types = {name: {str(kind) for kind in getattr(reports, name).dtypes} for name in memshim.TABLES}
    fact(set().union(*types.values()) <= {"int64", "Int64", "string", "bool"}, "every column is of integers, text or truth", [types])
    alike = all([str(kind) for kind in memshim.frame(path, name).dtypes] == [column.dtype for column in table.columns]
                for path in files for name, table in memshim.TABLES.items())
    fact(alike, "and of the same type in every file, whichever memshim wrote it")
    fact(len(reports) == len(files) and reports[0].path == files[0] and len(reports[1:]) == len(files) - 1, "reports are a sequence of reports")
    again = pickle.loads(pickle.dumps(reports))
    fact(again.sites.equals(reports.sites), "and can be sent elsewhere")
    return reports


def files_of(files):
    """How files are named."""
    folder = os.path.dirname(files[0])
    pattern = os.path.join(folder, "*.json")
    fact(len(memshim.load(pattern)) == len([name for name in os.listdir(folder) if name.endswith(".json")]), "a pattern stands for files")
    said = raised(FileNotFoundError, memshim.load, os.path.join(folder, "no*.json"))
    wrong = raised(memshim.ReportError, memshim.load, folder), raised(ValueError, memshim.load, files, "polars"), raised(ValueError, memshim.frame, files[0], "rows")
    fact("no*.json" in said and "directory" in wrong[0] and "pandas and dask" in wrong[1] and "devices" in wrong[2],
         "what is none is named, with what is allowed", [said, *wrong])


def dask(files, reports):
    """The same tables file by file."""
    lazy = memshim.load(files, engine="dask")
    wrong = []
    for name in memshim.TABLES:
        found, wanted = getattr(lazy, name).compute().reset_index(drop=True), getattr(reports, name)
        same = list(found.columns) == list(wanted.columns) and found.astype(object).where(found.notna(), None).equals(
            wanted.astype(object).where(wanted.notna(), None))
        if not same or getattr(lazy, name).npartitions != len(files):
            wrong.append(name)
    fact(not wrong, "Dask has the same tables, a partition for each file", wrong)
    most = lazy.sites.groupby("api")["total_bytes"].sum().compute().to_dict()
    fact(most == reports.sites.groupby("api")["total_bytes"].sum().to_dict() and len(lazy.compute()) == len(files), "and computes with them")


def pictures(reports):
    """What is drawn is what the reports have."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = reports[-1:].plot()
    most = max(line.get_ydata().max() for line in axes.get_lines() if "reserved" not in line.get_label())
    fact(most * MIB == max(row.live_bytes for row in reports[-1].timeline), "the timeline's most is the report's")
    bars = [round(bar.get_width() * MIB) for bar in reports[-1:].plot.sites(top=3).patches]
    wanted = sorted((site.at_peak_bytes for site in reports[-1].sites), reverse=True)[:3]
    fact(bars == wanted, "bars are those of the call sites with most", [bars, wanted])
    drawn = reports[-1:].plot.phases()
    phases = {text.get_text(): round(bar.get_width() * MIB) for text, bar in zip(drawn.get_yticklabels(), drawn.patches)}
    fact(phases == {"step": 12 * MIB, "load": 8 * MIB}, "and of phases", [phases])
    fact(sum(round(bar.get_width() * MIB) for bar in reports[-1:].plot.leaks().patches) == 2 * MIB, "and of leaks")
    fact("at_peak_bytes" in raised(ValueError, lambda: reports.plot.sites(by="bytes")), "what cannot be drawn is named")
    hostile = json.loads(json.dumps(reports[-1].data))
    for phase in hostile["phases"]:
        phase["name"] = "$\\frac{$ <b>\u202e"
    for row in hostile["frames"]:
        row["file"] = "$\\nothing$"
    path = os.path.join(TMP, "$host$ile.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(hostile, file)
    both = memshim.load([path, path])
    for draw in (both.plot, both.plot.sites, both.plot.phases, both.plot.leaks):
        draw().figure.savefig(os.path.join(TMP, "drawn.png"))
    pyplot.close("all")
    fact(True, "names are drawn as text, and are no formulas")
    fact("<b>" not in both._repr_html_() + both.phases._repr_html_(), "nor any markup in a notebook")


def large(reports):
    """Many call sites, of which each has a stack of its own."""
    data = json.loads(json.dumps(reports[-1].data))
    site, frame, stacks = data["sites"][0], len(data["frames"]), data["stacks"]
    data["sites"] = []
    for number in range(SITES):
        stack = site["stack"]
        for depth in range(4):
            data["frames"].append({"kind": "python", "function": "f%d_%d" % (number, depth), "file": "/srv/app/part%d.py" % (number % 97), "line": number})
            stacks.append([stack, len(data["frames"]) - 1])
            stack = len(stacks) - 1
        data["sites"].append(dict(site, id=number, stack=stack, live_bytes=number))
    data["leaks"] = [{"site": number, "bytes": number, "count": 1, "class": "at_exit", "first_ns": 0, "last_ns": 1} for number in range(SITES)]
    path = os.path.join(TMP, "large.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file)
    begun = time.monotonic()
    sites = memshim.load(path).sites
    print("# %d call sites, %.0f MB: read in %.1f s" % (SITES, os.path.getsize(path) / 1e6, time.monotonic() - begun))
    fact(len(sites) == SITES and int(sites["live_bytes"].sum()) == SITES * (SITES - 1) // 2
         and list(sites["line"]) == list(range(SITES)) and sites["function"][7] == "f7_3" and frame > 0, "a report of %d call sites is read" % SITES)
    fact(len(memshim.load(path)._repr_html_()) < 20000, "and its view is small")


def main():
    """The test."""
    today = reader.record(os.path.join(HERE, "train.py"), os.path.join(TMP, "today.json"), MEMSHIM_TIMELINE="16")
    files = [*reader.kept_reports(), os.path.join(reader.TOP, "tests", "cli", "data", "train.json"), today]
    print("# pandas %s" % pandas.__version__)
    reader.plan(22)
    reports = tables(files)
    files_of(files)
    dask(files, reports)
    pictures(reports)
    empty = memshim.load([])
    fact(all(len(getattr(empty, name)) == 0 for name in memshim.TABLES) and "0 processes" in empty._repr_html_(), "no file is no row")
    huge = json.loads(json.dumps(reports[-1].data))
    huge["sites"][0]["live_bytes"] = 1 << 64
    path = os.path.join(TMP, "huge.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(huge, file)
    fact("63 bits" in raised(memshim.ReportError, lambda: memshim.load(path).sites), "a number that no column holds is told")
    large(reports)


main()
