"""Plays a program with one mistake at a time, and its clean twin, and judges what `memshim findings` says of it: the rule that the table names, the line that the program
marks, and nothing else; of the twin nothing."""
import json

from . import judge

NOTHING = "nothing"  # as a rule: what is right in either way


def line_of(path, name):
    """file.py:12, of the line that is marked so."""
    with open(path, encoding="utf-8") as file:
        rows = file.read().splitlines()
    return "%s:%d" % (path, next(number for number, row in enumerate(rows, 1) if row.endswith("# line: " + name)))


def wrong_in(bench, client, one, words, rule):
    """What is wrong with the findings; a line each."""
    outcome = bench.run("track", [*bench.words(client, one), *words], one.variables)
    if outcome.status != 0:
        return ["exit status %d" % outcome.status, *outcome.err.splitlines()[-10:]]
    reports = judge.paths(outcome.place)
    wrong = judge.invalid(bench.memshim, outcome.place) if len(reports) == 1 else ["%d reports" % len(reports)]
    if wrong:
        return wrong
    found = json.loads(bench.say("findings", "--json", reports[0]))["findings"]
    told = ["%s: %s; %s" % (row["rule"], row["message"], row["advice"]) for row in found]
    if rule == NOTHING:
        return ["found, " + row for row in told]
    place = "(%s)" % line_of(one.program, words[0])
    right = len(found) == 1 and found[0]["rule"] == rule and place in found[0]["message"] + found[0]["advice"]
    return [] if right else ["no %s alone that tells %s" % (rule, place), *told]


def play(bench, client, played):
    """All faults of a client: PROGRAM NAME RULE in the table."""
    for one in client.faults:
        *_, name, rule = one.arguments
        one.arguments = one.arguments[:-2]
        played.fact(wrong_in(bench, client, one, [name], rule), "%s: %s" % (name, rule))
        played.fact(wrong_in(bench, client, one, [name, "clean"], NOTHING), "%s, its twin: nothing" % name)
