"""The table of complete.md: of which programs all schedules are made, with how many preemptions, and how many those are.

Used by scripts/schedules --every, and by the test, which holds the smaller ones to it. A row that is there stays until its program is run again, so that the table can be made in parts.
"""
import os
import re
import resource
import signal
import subprocess

BEGIN, END = "<!-- all schedules: made by scripts/schedules --every --write -->\n", "<!-- end of all schedules -->\n"
HEAD = "| program | tasks | steps | schedules | all with |\n|---|---:|---:|---:|---|\n"
PAGE = "tests/schedules/complete.md"
MOST, SECONDS = 3, 600  # preemptions; of processor time, for each number of them


def made(program, name, count, preemptions):
    """What `every` says of so many preemptions; None where it ran out of schedules, or of time. Exits where one fails."""
    with subprocess.Popen([program, name, "every", str(count), str(preemptions)], text=True, stdout=subprocess.PIPE) as run:
        resource.prlimit(run.pid, resource.RLIMIT_CPU, (SECONDS, SECONDS))
        said = run.communicate()[0]
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    if run.returncode != 0:
        raise SystemExit("%s: %s" % (name, said.split("\n", 1)[0]))
    figures = re.match(r"# all with up to \d+ preemptions: (\d+) made, of which \d+ were cut short, by (\d+) tasks in (\d+) steps", said)
    return figures.groups() if figures else None


def row(program, name, count):
    for preemptions in range(MOST, -1, -1):
        said = made(program, name, count, preemptions)
        if said:
            schedules, tasks, steps = said
            return "| `%s` | %s | %s | %s | %d preemptions |\n" % (name, tasks, steps, "{:,}".format(int(schedules)), preemptions)
    return "| `%s` | | | | |\n" % name


def write_page(path, rows, order):
    """Rows by program replace those that are there."""
    with open(path, encoding="utf-8") as page:
        text = page.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    all_rows = {line.split("`")[1]: line for line in text[begin:end].splitlines(keepends=True) if line.startswith("| `")}
    all_rows.update(rows)
    with open(path, "w", encoding="utf-8") as page:
        page.write(text[:begin] + HEAD + "".join(all_rows[name] for name in order if name in all_rows) + text[end:])


def told(top, count):
    """(program, preemptions) of the rows of the page that have no more than so many schedules."""
    with open(os.path.join(top, PAGE), encoding="utf-8") as page:
        text = page.read()
    rows = re.findall(r"^\| `([a-z-]+)` \| \d+ \| \d+ \| ([\d,]+) \| (\d) preemptions \|$", text[text.index(BEGIN):text.index(END)], re.MULTILINE)
    return [(name, preemptions) for name, schedules, preemptions in rows if int(schedules.replace(",", "")) <= count and not name.startswith("litmus-")]


def complete(top, program, names, options):
    """A line for each; `names` are all there are, of which some may be chosen."""
    rows = {}
    for name in options.names or names:
        rows[name] = row(program, name, options.count)
        print(rows[name], end="", flush=True)
        if options.write:
            write_page(os.path.join(top, PAGE), {name: rows[name]}, names)
    return False
