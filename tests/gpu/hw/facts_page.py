"""The table of docs/user/hardware/facts.md: from the list of facts, a run on the simulator, and the results that are kept."""

import glob
import json
import os
import subprocess
import sys

BEGIN, END = "<!-- facts: scripts/hardware --docs writes this table -->", "<!-- end of facts -->"
LONGEST = 200
# Where the simulator's value is a time, or depends on how this was built.
VARIES = ("6.", "1.18", "1.19")


def on_simulator(build, *arguments):
    """What the program prints there."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MEMSHIM_", "MEMSIM_", "LD_"))}
    done = subprocess.run([os.path.join(build, "tests/gpu/facts"), *arguments], stdout=subprocess.PIPE, text=True,
                          env={**environment, "LD_LIBRARY_PATH": build}, check=False)
    return done.stdout


def values(text):
    """id -> value."""
    lines = (line.split(" ", 3) for line in text.splitlines() if line.startswith("fact "))
    return {words[1]: words[3] for words in lines if len(words) == 4}


def measured(top):
    """Machines in words, each with id -> what was measured there."""
    found = []
    for path in sorted(glob.glob(os.path.join(top, "docs", "user", "hardware", "*", "facts.json"))):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        where = f"{result['machine']['device']}, driver {result['machine']['driver']}, {result['date']}"
        found.append((where, {row["id"]: row["value"] for row in result["rows"]}))
    return found


def cell(value):
    """A value as it may stand in a table."""
    value = value.replace("|", "\\|")
    return value if len(value) <= LONGEST else value[: LONGEST - 3] + "..."


def table(top, build):
    """The lines of the table."""
    here = values(on_simulator(build))
    there = measured(top)
    heads = [f"measured: {where}" for where, _ in there] or ["measured"]
    lines = ["| fact | name | asked | simulator | " + " | ".join(heads) + " |", "|---|---|---|---|" + "---|" * len(heads)]
    for line in on_simulator(build, "--list").splitlines():
        number, name, asked = line.split(" ", 2)
        own = "(varies)" if number.startswith(VARIES) else here.get(number, "?")
        known = [told.get(number, "open") for _, told in there] or ["open"]
        cells = [cell(own)] + ["the same" if value == own else cell(value) for value in known]
        lines.append(f"| {number} | `{name}` | {asked} | " + " | ".join(cells) + " |")
    return lines


def with_table(page, lines):
    """The page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after


def update(top, build):
    """Rewrites the page."""
    path = os.path.join(top, "docs", "user", "hardware", "facts.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if BEGIN not in page or END not in page:
        sys.exit(f"hardware: {path} has no place for the table")
    changed = with_table(page, table(top, build))
    if changed != page:
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
    print(f"{path}: {'changed' if changed != page else 'as it was'}")
    return 0
