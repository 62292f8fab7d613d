#!/usr/bin/env python3
"""The facts on the simulator: each is said, and docs/user/hardware/facts.md lists each with the simulator's value. Prints TAP."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "hw")]
import facts_page  # noqa: E402
from gputap import BUILD, TOP, fact, plan  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "gpu", "facts")


def run(*arguments, **more):
    """The program's output on the simulator, and its exit status."""
    done = subprocess.run([PROGRAM, *arguments], env={**os.environ, "LD_LIBRARY_PATH": BUILD, **more}, stdout=subprocess.PIPE,
                          text=True, timeout=100, check=False)
    return done.stdout, done.returncode


def listed(page):
    """The rows of the table: id -> (name, simulator's value)."""
    rows = re.findall(r"^\| (\d+\.\d+) \| `(\w+)` \| [^|]* \| (.*?) \| (?!-)[^|]+ \|$", page, re.M)
    return {number: (name, value) for number, name, value in rows}


plan(8)
known = dict(line.split(" ", 2)[:2] for line in run("--list")[0].splitlines())
with open(os.path.join(TOP, "docs", "user", "hardware", "facts.md"), encoding="utf-8") as file:
    text = file.read()
rows = listed(text)
fact(len(known) > 100 and {k: v[0] for k, v in rows.items()} == known, "the program and docs/user/hardware/facts.md list the same facts",
     sorted(set(known.items()) ^ {(k, v[0]) for k, v in rows.items()}))
output, status = run()
said = facts_page.values(output)
fact(status == 0, f"every part comes to its end: {status}")
fact(set(said) == set(known), "every fact is said", sorted(set(known) ^ set(said)))
unsaid = [f"{k} {v}" for k, v in said.items() if re.match(r"- (it ended|signal|it took|the program)", v)]
fact(not unsaid, "by the part that asks", unsaid)
stale = [f"{k} {known.get(k)}: the page says {rows[k][1]}; the simulator {v}" for k, v in said.items()
         if k in rows and not k.startswith(facts_page.VARIES) and rows[k][1] != facts_page.cell(v)]
fact(not stale, "docs/user/hardware/facts.md has the simulator's values (scripts/hardware --docs)", stale)
two, _ = run("pools", "waits", MEMSIM_DEVICES="2")
two = facts_page.values(two)
fact((two.get("8.12"), two.get("8.13"), two.get("8.14")) == ("no", "yes", "yes"), "with two devices, access by peers is asked for",
     [str(two)])
fact(two.get("5.7") == "no", "and whether a free waits for the other device", [str(two)])
_, none = run(MEMSIM_DEVICES="0")
fact(none != 0, "without a device the exit status says so")
