"""The simulator against what was recorded of real cards: every row of record.tsv is held, or differs as the table says and
docs/internals/simulator.md explains. A row without a reason that differs fails; so does one with a reason that holds, and a number in the
documentation that is not that of the table."""

import collections
import os
import re
import subprocess

SOURCE = os.path.join(os.environ["top_srcdir"], "tests", "sim", "record.tsv")
PROGRAMS = os.path.join(os.environ["top_builddir"], "tests", "sim")
DOCUMENT = os.path.join(os.environ["top_srcdir"], "docs", "internals", "simulator.md")
HEADING = "## Held against recorded hardware"

Row = collections.namedtuple("Row", "table card fact status value source differs")
results = []


def check(good, text, more=""):
    results.append(good)
    print(f"{'ok' if good else 'not ok'} {len(results)} - {text.replace('#', ' ')}", flush=True)
    if not good and more:
        print(f"# {more}", flush=True)


def rows():
    with open(SOURCE, encoding="utf-8") as file:
        return [Row(*line.rstrip("\n").split("\t")) for line in file if not line.startswith("#")]


def answers(table, card):
    """What the simulator says as this card: fact to (status, value)."""
    environment = dict(os.environ, MEMSIM_CARD=card, MEMSIM_DEVICES="2")
    ended = subprocess.run([os.path.join(PROGRAMS, f"record_{table}")], env=environment, capture_output=True, text=True, timeout=120, check=False)
    check(ended.returncode == 0, f"{table} of {card}: the program ends well", ended.stderr.strip())
    said = [line.split("\t") for line in ended.stdout.splitlines()]
    check(len({fact for fact, _, _ in said}) == len(said), f"{table} of {card}: no fact has another's name")
    return {fact: (status, value) for fact, status, value in said}


def hold(group, said):
    for row in group:
        recorded, seen = (row.status, row.value), said.get(row.fact)
        name = f"{row.table} of {row.card}: {row.fact}"
        if row.differs == "-":
            check(seen == recorded, name, f"recorded {recorded}, simulated {seen}")
        else:
            check(seen != recorded, f"{name} ({row.differs})", "it is as recorded: take the reason out of record.tsv, and count again in the documentation")


def reasons():
    """The documented reasons: key to the number of rows."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read().split(HEADING, 1)[-1].split("\n## ", 1)[0]
    return {key: int(count) for key, count in re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.M)}


def main():
    table = rows()
    groups = collections.defaultdict(list)
    for row in table:
        groups[row.table, row.card].append(row)
    for (name, card), group in groups.items():
        hold(group, answers(name, card))
    listed = dict(collections.Counter(row.differs for row in table if row.differs != "-"))
    check(reasons() == listed, "docs/internals/simulator.md lists every reason, with the number of rows", f"it says {reasons()}, the table {listed}")
    check(len({row[:3] for row in table}) == len(table), "each fact stands once")
    print(f"1..{len(results)}")


main()
