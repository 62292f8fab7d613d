"""Plays a program with a planted holder (planted.py) to each of its ends, and judges what `memshim summary --all` and `memshim leaks` then say to people: the holder's file and line, with all
that it holds, and nothing of the function beside it that gives its memory back."""
import re

from . import judge, run

ENDS = {"end": 0, "killed": -9, "oom": 1}  # and how the program leaves
WORDS = {"end": "at its end", "killed": "when it was killed", "oom": "when it ran out of memory"}
HOLDER, INNOCENT = "holds", "gives_back"
HELD = "12.0 MiB in 3 blocks"  # what planted.py says that it holds, as people are told of it


def place_of(path, function):
    """FUNCTION (FILE:LINE) of the line in which a program's function asks for memory: the one that says so."""
    with open(path, encoding="utf-8") as file:
        rows = file.read().splitlines()
    return "%s (%s:%d)" % (function, path, next(number for number, row in enumerate(rows, 1) if row.endswith("# line: " + function)))


def rows_of(text):
    """The lines of a listing that tell of a site, each with the program's own line at its end."""
    return [line for line in text.splitlines() if re.search(r"[0-9] [KMGT]?i?B .*, in ", line)]


def wrong_in_leaks(text, holder):
    """What `memshim leaks` does not say as it is."""
    rows = rows_of(text)
    wrong = [] if any(row.startswith(HELD + ", ") and row.endswith(", in " + holder) for row in rows) else ["leaks: no row has %s, in %s" % (HELD, holder), *rows]
    return wrong + ["leaks: blames " + row for row in rows if ", in %s " % INNOCENT in row]


def wrong_in_summary(text, holder, end):
    """What `memshim summary` does not."""
    before, _, oom = text.partition("\nOut of memory\n")
    sites = [row for row in rows_of(before.partition("\nCall sites ")[2]) if row.endswith(", in " + holder)]
    wrong = [] if len(sites) == 1 and " in 3 calls of " in sites[0] else ["summary: the sites have no such line: " + holder, *sites]
    wrong += ["summary: finds " + line for line in text.splitlines() if line.startswith("  warning: ") and not line.endswith(" never freed")]
    if end != "oom":
        return wrong + (["summary: there was memory"] if oom else [])
    held = [line.strip() for line in oom.partition("held most then:\n")[2].split("\n\n")[0].splitlines()]
    if not any(line.startswith("12.0 MiB by ") and line.endswith(", in " + holder) for line in held):
        wrong += ["summary: out of memory, and nothing of " + holder, *held]
    return wrong + ["summary: out of memory, blames " + line for line in held if ", in %s " % INNOCENT in line]


def wrong_at(bench, client, one, end):
    """What is wrong at an end; a line each."""
    outcome = bench.run(run.RECOVERED if end == "killed" else "pool", [*bench.words(client, one), end], one.variables)
    if outcome.status != ENDS[end]:
        return ["exit status %d" % outcome.status, *outcome.err.splitlines()[-10:]]
    reports = judge.paths(outcome.place)
    wrong = judge.invalid(bench.memshim, outcome.place) if len(reports) == 1 else ["%d reports" % len(reports)]
    if wrong:
        return wrong
    holder = place_of(one.program, HOLDER)
    leaks, summary = bench.say("leaks", reports[0]), bench.say("summary", "--all", "--top=100", reports[0])
    return wrong_in_leaks(leaks, holder) + wrong_in_summary(summary, holder, end) + judge.wrong_top(one.view, leaks, summary)


def play(bench, client, played):
    """All holders of a client, each to all of its ends."""
    for one in client.holders:
        for end in ENDS:
            played.fact(wrong_at(bench, client, one, end), "%s: the line that holds memory is told %s" % (one.name, WORDS[end]))
