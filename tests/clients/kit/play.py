"""Plays a client's programs through: natively, then in every mode; a fact for each. Says what came of it as a list of facts."""
import collections
import difflib
import os

from . import faults, fits, holder, judge, run

Fact = collections.namedtuple("Fact", "holds name details")  # details: shown if it does not hold; notes of one that does


class Played:
    """What came of a client."""

    def __init__(self):
        self.facts, self.figures = [], 0
        self.measured = []  # (run, mode, what it measured)

    def fact(self, wrong, name, notes=()):
        """One more."""
        self.facts.append(Fact(not wrong, name, list(wrong) or list(notes)))

    def measure(self, one, mode, notes):
        """Keeps what a run measured, if it did."""
        measured = judge.measure(notes)
        if measured:
            self.measured.append((one.name, mode, measured))

    def green(self):
        """Whether all hold."""
        return all(fact.holds for fact in self.facts)


def tail(outcome):
    """The end of what a program complained of."""
    return ["exit status %d" % outcome.status, *outcome.err.splitlines()[-25:]]


def compare(native, other):
    """Lines that differ."""
    return list(difflib.unified_diff(native, other, "natively", "under memshim", n=0, lineterm=""))[:20]


def follow(bench, client, one, mode, native, played):
    """One run under memshim."""
    name = "%s, %s" % (one.name, mode)
    outcome = bench.run(mode, bench.words(client, one), one.variables)
    plain, figures, notes = judge.split(outcome.out)
    native_plain, native_figures, _ = judge.split(native.out)
    played.fact(tail(outcome) if outcome.status else compare(native_plain, plain), "%s: prints what it prints natively" % name, notes)
    played.measure(one, mode, notes)
    wrong = judge.invalid(bench.memshim, outcome.place)
    if wrong:
        played.fact(wrong, "%s: the report is sound" % name)
        return
    found = judge.reports(outcome.place)
    wrong = judge.check_reports(found, client, one, figures)
    if one.view in judge.TOPS:
        wrong += [line for path in judge.paths(outcome.place) for line in judge.wrong_top(one.view, bench.say("leaks", path), bench.say("summary", path))]
    played.fact(wrong, "%s: the report is sound" % name, [judge.describe(found)])
    if native_figures or figures:
        wrong = judge.check_figures(bench.memshim, outcome.place, found, figures)
        if sorted(figure[1:] for figure in figures) != sorted(figure[1:] for figure in native_figures):
            wrong.append("the figures differ from those natively")
        played.fact(wrong, "%s: %d figures of its own are memshim's" % (name, len(figures)))
        played.figures += len(figures)


def play(bench, client, modes=tuple(run.MODES)):
    """All runs of a client."""
    played = Played()
    for one in client.runs:
        native = bench.run(None, bench.words(client, one), one.variables)
        played.fact(tail(native) if native.status else [], "%s: runs natively" % one.name)
        if native.status:
            continue
        played.measure(one, "natively", judge.split(native.out)[2])
        for mode in modes:
            follow(bench, client, one, mode, native, played)
    holder.play(bench, client, played)
    faults.play(bench, client, played)
    fits.play(bench, client, played)
    return played


def temporary(parent, client):
    """A directory for its runs."""
    path = os.path.join(parent, client.name)
    os.makedirs(path)
    return path
