"""docs/user/clients.md: a table made of a run, in the order of clients.conf. Rows of clients that were not run are kept as they stand."""
import re

BEGIN, END = "<!-- table: made by scripts/test-clients --write -->", "<!-- end of the table -->"
SUITES, SUITES_END = "<!-- suites: made by scripts/test-clients --write -->", "<!-- end of the suites -->"
MEASURED, MEASURED_END = "<!-- measured: made by scripts/test-clients --write -->", "<!-- end of what was measured -->"
MEASURED_HEAD = "| run | measured | natively | pool | track | vmm |\n|---|---|---:|---:|---:|---:|\n"
HEAD = "| client | version | how it reaches the driver | natively | under memshim | whose figures agree | what is missing, and why |\n|---|---|---|---|---|---|---|\n"
SUITES_HEAD = "| suite (passed, failed) | natively | pool | track | vmm | differences |\n|---|---:|---:|---:|---:|---:|\n"


def row(result):
    """A client's row."""
    client = result.client
    natively = [fact for fact in result.facts if fact.name.endswith("natively") and "prints" not in fact.name]
    under = [fact for fact in result.facts if fact not in natively]
    figures = "%s (%d claims held)" % (client.figures, result.figures) if result.figures else client.figures
    return cells(client.name, result.version, client.reaches, verdict(natively), verdict(under), figures, client.missing)


def verdict(facts):
    """Green, or how much of it is not."""
    failed = sum(not fact.holds for fact in facts)
    return "not run" if not facts else "green (%d)" % len(facts) if not failed else "%d of %d failed" % (failed, len(facts))


def cells(*values):
    """A line of a table."""
    return "| " + " | ".join(" ".join(str(value).split()).replace("|", "\\|") for value in values) + " |"


def kept(text, begin, end):
    """name -> line, of the table between two comments."""
    found = {}
    for line in between(text, begin, end).splitlines()[2:]:
        found[line.split("|")[1].strip()] = line
    return found


def between(text, begin, end):
    """What stands there."""
    match = re.search(re.escape(begin) + r"\n(.*?)" + re.escape(end), text, re.S)
    return match.group(1) if match else ""


def put(text, begin, end, made):
    """The text with that in between."""
    return text.replace(begin + "\n" + between(text, begin, end) + end, begin + "\n" + made + end)


def suite_rows(results):
    """name -> line, of the suites that were run."""
    lines = {}
    for result in results:
        for what in dict.fromkeys(row[0] for row in result.suites):
            counts = {mode: (passed, failed, differ) for suite, mode, passed, failed, differ in result.suites if suite == what}
            of = result.version + (", " + result.origin if result.origin else "")
            name = "%s %s: `%s`" % (result.client.name, of, what)
            lines[name] = cells(name, *("%d, %d" % counts[mode][:2] for mode in ("natively", "pool", "track", "vmm")), sum(count[2] for count in counts.values()))
    return lines


def measured_rows(results):
    """name -> lines, of the runs that measured something: a line for each key."""
    rows = {}
    for result in results:
        for run in dict.fromkeys(name for name, _, _ in result.measured):
            by_mode = {mode: values for name, mode, values in result.measured if name == run}
            keys = dict.fromkeys(key for values in by_mode.values() for key in values)
            rows[run] = "".join(cells("`%s`" % run, key.replace("_", " "), *(by_mode.get(mode, {}).get(key, "") for mode in ("natively", "pool", "track", "vmm"))) + "\n" for key in keys)
    return rows


def kept_measured(text):
    """name -> lines, as they stand."""
    rows = {}
    for line in between(text, MEASURED, MEASURED_END).splitlines()[2:]:
        name = line.split("|")[1].strip(" `")
        rows[name] = rows.get(name, "") + line + "\n"
    return rows


def write(path, results, clients):
    """Writes the page's tables."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    rows = kept(text, BEGIN, END)
    rows.update((result.client.name, row(result)) for result in results if result.skipped is None)
    rows.update((client.name, cells(client.name, "", client.reaches, "not run", "not run", client.figures, client.missing)) for client in clients if client.kind == "told")
    text = put(text, BEGIN, END, HEAD + "".join(rows[client.name] + "\n" for client in clients if client.name in rows))
    made = suite_rows(results)
    again = {name.split(" ")[0] for name in made}
    suites = {**{name: line for name, line in kept(text, SUITES, SUITES_END).items() if name.split(" ")[0] not in again}, **made}
    text = put(text, SUITES, SUITES_END, SUITES_HEAD + "".join(line + "\n" for name, line in suites.items()))
    text = put(text, MEASURED, MEASURED_END, MEASURED_HEAD + "".join({**kept_measured(text), **measured_rows(results)}.values()))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
