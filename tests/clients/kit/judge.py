"""Judges what a client's program did under memshim by what it did natively: status, lines, reports, claims. Runs nothing but `memshim validate`.

Lines of a program's output: `figure ...` is a claim (mark.py), which is held against the trace and the report of its process; `note ...` may differ and is only shown; every other
line has to be the same natively and in each mode, in order. Claims too have to be the same, but for the process's number.
"""
import collections
import glob
import json
import os
import re
import subprocess

MARK = 77001
Figure = collections.namedtuple("Figure", "pid kind name value first last")
TOPS = {"tensors": "shows the tensors of ", "segments": "(shows (segments of the cache of |the tensors that )|Peak .* allocated by tensors)", "mixed": "shows tensors and segments of caches mixed, of "}
CLEAN = ("unseen_frees", "replaced_blocks", "late_frees")
BAD_FINDINGS = ("double_free", "interior_free", "unseen_frees", "context_died_with_blocks")


def split(out):
    """(lines to compare, figures, notes) of an output."""
    plain, figures, notes = [], [], []
    for line in out.splitlines():
        if line.startswith("figure "):
            pid, kind, name, value, first, last = line.split()[1:]
            figures.append(Figure(int(pid), kind, name, int(value), None if first == "-" else int(first), None if last == "-" else int(last)))
        elif line.startswith("note "):
            notes.append(line[5:])
        else:
            plain.append(line)
    return plain, figures, notes


def load(path):
    """A report."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def paths(place):
    """The reports that a run left."""
    return sorted(path for path in glob.glob(os.path.join(place, "*.json")) if not path.endswith(".job.oom.json"))


def reports(place):
    """pid -> report, of the processes that used the device."""
    found = [load(path) for path in paths(place)]
    return {report["run"]["pid"]: report for report in found}


class Trace:
    """A process's trace: bytes live, most, altogether and how many, at each mark; the marks' own blocks left out, and tensors, which lie in blocks."""

    def __init__(self, memshim, path):
        self.at = {}
        self.live = self.total = self.count = 0
        self.rises = []  # (total lines read, live) after each allocation, for peaks
        self.whole = [0, 0]  # allocations and bytes, the marks' too
        self._sizes = {}
        for line in subprocess.run([memshim, "trace", "--text", path], capture_output=True, text=True, check=True).stdout.splitlines():
            if not line.startswith("#") and line.split()[1] in ("a", "f"):
                self._take(*line.split()[1:4])

    def _take(self, op, identity, size):
        """A line."""
        size = int(size)
        if op == "a":
            self.whole = [self.whole[0] + 1, self.whole[1] + size]
        if self._is_mark(size):
            if op == "a":
                self.at[(size - MARK) // 2] = (self.live, self.total, self.count, len(self.rises))
            return
        if op == "a":
            self._sizes[identity] = size
            self.live, self.total, self.count = self.live + size, self.total + size, self.count + 1
            self.rises.append(self.live)
        else:
            self.live -= size

    def _is_mark(self, size):
        """Whether the size is that of the next mark, or of the last: a program that asks for it in between would show as a claim that is wrong."""
        return size % 2 == 1 and 0 <= size - MARK <= 2 * (len(self.at) + 1)

    def value(self, figure):
        """What the trace says of what a figure claims; None, if its mark is not there."""
        begin = (0, 0, 0, 0) if figure.first is None else self.at.get(figure.first)
        end = self.at.get(figure.last)
        if begin is None or end is None:
            return None
        if figure.kind == "peak":
            return max([begin[0], *self.rises[begin[3] : end[3]]]) - begin[0]
        return end[("live", "total", "count").index(figure.kind)] - begin[("live", "total", "count").index(figure.kind)]


def leaked(report):
    """Bytes that a process left unfreed."""
    return sum(leak["bytes"] for leak in report["leaks"])


def check_figures(memshim, place, found, figures):
    """What is claimed and is not so; a line each."""
    wrong, traces = [], {}
    for figure in figures:
        report = found.get(figure.pid)
        if figure.kind == "leaks":
            told = leaked(report) if report else None
        elif figure.kind == "site":
            told = leaked_at(report, figure.name) if report else None
        else:
            path = os.path.join(place, "%d.trace" % figure.pid)
            if figure.pid not in traces:
                traces[figure.pid] = Trace(memshim, path) if os.path.exists(path) else None
            told = traces[figure.pid].value(figure) if traces[figure.pid] else None
        if told != figure.value:
            wrong.append("%s %s: the program says %d, memshim %s" % (figure.kind, figure.name, figure.value, "nothing" if told is None else told))
    return wrong + [line for pid, trace in traces.items() if trace for line in check_trace(trace, found.get(pid))]


def check_trace(trace, report):
    """Whether trace and report say the same."""
    if report is None:
        return ["a trace has no report"]
    kinds = ("device", "async", "managed", "array", "handle", "graph")
    counted = [sum(site[key] for site in report["sites"] if site["kind"] in kinds) for key in ("total_count", "requested_bytes")]
    return [] if counted == trace.whole else ["the report has %d allocations of %d bytes, the trace %d of %d" % (*counted, *trace.whole)]


def invalid(memshim, place):
    """What `memshim validate` complains of; a line each."""
    if not paths(place):
        return []
    done = subprocess.run([memshim, "validate", *paths(place)], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()[:20] if done.returncode else []


def allocators(report):
    """Paths of the modules in whose code anything was allocated."""
    found, stacks = set(), {site["stack"] for site in report["sites"]}
    while stacks - {0}:
        rows = [report["stacks"][stack] for stack in stacks if stack]
        found |= {report["modules"][report["frames"][frame]["module"]]["path"] for _, frame in rows if "module" in report["frames"][frame]}
        stacks = {parent for parent, _ in rows}
    return found


def leaked_at(report, word):
    """Bytes that were left unfreed by sites with this word in the name of a function."""
    functions = {}

    def names(stack):
        found = functions.get(stack)
        if found is None:
            parent, frame = report["stacks"][stack]
            found = functions[stack] = (names(parent) if parent else False) or word in report["frames"][frame].get("function", "")
        return found

    return sum(leak["bytes"] for leak in report["leaks"] if names(report["sites"][leak["site"]]["stack"]))


def measure(notes):
    """What a program measured, which is no claim: from its notes `measure KEY=VALUE...`; {} without one."""
    return dict(word.split("=", 1) for note in notes if note.startswith("measure ") for word in note.split()[1:])


def wrong_top(view, *listings):
    """Listings for people that do not say at their top what their rows are; a line each."""
    heads = ["\n".join(listing.splitlines()[:6]) for listing in listings] if view in TOPS else ()
    return ["%s is not at the top of a listing: %s" % (view, head) for head in heads if not re.search("^ *" + TOPS[view], head, re.M)]


def check_reports(found, client, one, figures):
    """What is wrong with the reports of a run, which are valid; a line each."""
    wrong = [] if one.view is None else ["run.view is %s, not %s" % (report["run"].get("view"), one.view) for report in found.values() if report["run"].get("view") != one.view]
    if len(found) < client.processes:
        wrong.append("%d of %d processes have a report" % (len(found), client.processes))
    if client.module and not any(re.search(client.module, path) for report in found.values() for path in allocators(report)):
        wrong.append("no report names %s, which allocated" % client.module)
    claimed = {figure.pid: figure.value for figure in figures if figure.kind == "leaks"}
    for pid, report in found.items():
        wrong += ["%s: %d" % (key, report["coverage"][key]) for key in CLEAN if report["coverage"].get(key)]
        wrong += ["finding: " + finding["message"] for finding in report["findings"] if finding["rule"] in BAD_FINDINGS]
        wrong += ["diagnostic: %s" % line for line in report["diagnostics"] if not (client.diagnostics and re.search(client.diagnostics, str(line)))]
        if leaked(report) != claimed.get(pid, 0):
            wrong.append("%d bytes are left unfreed, and %d were planted" % (leaked(report), claimed.get(pid, 0)))
    return wrong


def describe(found):
    """What the reports say of memory, in words."""
    keys = ("allocated_count", "peak_live_bytes", "peak_reserved_bytes", "vendor_calls")
    sums = {key: sum(device[key] for report in found.values() for device in report["devices"]) for key in keys}
    return "%d allocations, %d bytes live at the peak, %d reserved, %d calls of the vendor" % tuple(sums[key] for key in keys)
