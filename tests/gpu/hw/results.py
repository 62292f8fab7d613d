"""Writes what stages found, as JSON and as pages, and remembers which stages are done."""

import datetime
import json
import os
import platform
import subprocess
import textwrap

MOST_ROWS = 400


def machine(context):
    """What this is measured on; None if there is no device."""
    environment = context.environment()
    done = subprocess.run([context.program("facts"), "--machine"], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    found = {}
    for line in done.stdout.splitlines():
        _, key, value = (line.split(" ", 2) + ["", ""])[:3]
        found[key] = value
    if done.returncode or "device" not in found:
        return None, (done.stdout + done.stderr).strip()
    found["driver"] = "simulated" if context.dry_run else kernel_driver()
    found["system"] = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return found, ""


def kernel_driver():
    """The version of the kernel's driver."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            words = file.readline().split()
    except OSError:
        return "unknown"
    return next((w for w in words if w[0].isdigit() and "." in w), "unknown")


def today():
    """The date, in universal time."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


class Results:
    """The output folder of one machine."""

    def __init__(self, folder, about):
        self.folder, self.about = folder, about
        self.path = os.path.join(folder, "state.json")
        try:
            with open(self.path, encoding="utf-8") as file:
                self.state = json.load(file)
        except (OSError, ValueError):
            self.state = {}

    def is_done(self, name):
        """Whether the stage was run to its end before."""
        return self.state.get(name, {}).get("status") == "done"

    def put(self, name, title, status, reason, rows, notes):
        """One stage's results, at once on disk: the next one may be the end of this machine's time."""
        entry = {"name": name, "title": title, "status": status, "reason": reason, "date": today(), **self.about,
                 "notes": notes, "rows": rows}
        self.write(name + ".json", json.dumps(entry, indent=1) + "\n")
        self.write(name + ".md", page(entry))
        self.state[name] = {"status": status, "reason": reason, "date": entry["date"], "commit": self.about["commit"]}
        self.write("state.json", json.dumps(self.state, indent=1) + "\n")

    def write(self, name, text):
        """Replaces a file as a whole."""
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def summary(self, stages):
        """The page that leads to the others."""
        lines = [f"# {self.about['machine'].get('device', 'unknown device')}", "", *about_lines(self.about), "",
                 "| stage | what | status | date |", "|---|---|---|---|"]
        for name, title, _ in stages:
            entry = self.state.get(name)
            if entry:
                reason = f": {entry['reason']}" if entry["reason"] else ""
                lines.append(f"| [{name}]({name}.md) | {title} | {entry['status']}{reason} | {entry['date']} |")
            else:
                lines.append(f"| {name} | {title} | not run yet | |")
        self.write("README.md", "\n".join(lines) + "\n")


def about_lines(about):
    """Device, driver, commit, for people."""
    m = about["machine"]
    return [f"Device: {m.get('device')} ({int(m.get('memory_bytes', 0)) >> 20} MiB, compute capability "
            f"{m.get('compute_capability')}), {m.get('devices')} of them  ",
            f"Driver: {m.get('driver')} (CUDA {m.get('driver_api')}), runtime {m.get('runtime')}  ",
            f"System: {m.get('system')}  ", f"Commit: {about['commit']}"]


def page(entry):
    """One stage, for people."""
    lines = [f"# {entry['title']}", "", *about_lines(entry), f"Date: {entry['date']}", "",
             f"Status: {entry['status']}" + (f" ({entry['reason']})" if entry["reason"] else ""), ""]
    lines += [textwrap.fill(f"{note}.", 110) for note in entry["notes"]] + [""] * bool(entry["notes"])
    rows = entry["rows"]
    if rows:
        keys = list(rows[0])
        lines += ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
        for row in rows[:MOST_ROWS]:
            lines.append("| " + " | ".join(str(row.get(k, "")).replace("|", "\\|") for k in keys) + " |")
    elif entry["status"] == "done":
        lines.append("Nothing differs.")
    return "\n".join(lines) + "\n"
