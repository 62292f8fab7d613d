"""A program in Python that allocates from five functions has five sites, each with file and line, in the reports of every
CPython that is here: at its end, when it was killed, and when there was no memory. Speaks TAP."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import interpreters  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "holders.py")
TMP, MEMSHIM, LIB, SIM = (os.environ["TEST_" + k] for k in ("TMP", "BIN", "LIB", "SIM"))
RUNTIME = os.path.join(SIM, "libcudart.so.12")
THREAD = os.path.abspath(os.path.join(os.environ["top_builddir"], "tests/python/plain_thread.so"))
with open(PROGRAM, encoding="utf-8") as source:
    LINES = {line.split("# line: ")[1].strip(): number for number, line in enumerate(source, 1) if "# line: " in line}
results = 0
failures = 0


def same(got, want, name):
    """Two values are equal."""
    global results, failures
    results += 1
    failures += got != want
    print(f"{'ok' if got == want else 'not ok'} {results} - {name}")
    if got != want:
        print(f"# got {got!r}, want {want!r}")


def run(command, *arguments, **more):
    """Runs the program under memshim; the report's path, made from the ledger where it was killed."""
    path = os.path.join(TMP, "report.json")
    for name in os.listdir(TMP):
        if name.endswith((".json", ".ledger")):
            os.unlink(os.path.join(TMP, name))
    environment = {**os.environ, "LD_PRELOAD": LIB, "LD_LIBRARY_PATH": SIM, "MEMSHIM_REPORT": path, "MEMSHIM_DIR": TMP, **more}
    subprocess.run([*command, PROGRAM, RUNTIME, *arguments], env=environment, check=False)
    if not os.path.exists(path):
        subprocess.run([MEMSHIM, "recover", "-o", path, TMP], check=True, capture_output=True)
    return path


def load(path):
    """A report with names."""
    named = path + ".named.json"
    subprocess.run([MEMSHIM, "symbolize", "-o", named, path], check=True, capture_output=True)
    same(subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, check=False).returncode, 0, "it is valid")
    with open(named, encoding="utf-8") as file:
        return json.load(file)


def frames(report, number):
    """A stack, innermost first."""
    while number:
        number, frame = report["stacks"][number]
        yield report["frames"][frame]


def holders(report, rows):
    """The functions of the program that hold memory, with their lines, by the bytes they hold."""
    found = {}
    for row in rows:
        site = report["sites"][row["site"]]
        own = [(f["function"].split(".")[-1], f["line"]) for f in frames(report, site["stack"])
               if f["kind"] == "python" and f.get("file") == PROGRAM]
        own = [pair for pair in own if pair[1] != LINES["malloc"] and not pair[0].startswith("<")]
        found[own[0] if own else None] = found.get(own[0] if own else None, 0) + row["bytes"]
    return found


HELD = {(name, LINES[name]): size for name, size in
        (("plain", 1000), ("in_decorator", 2000), ("generator", 3000), ("method", 8096), ("in_callback", 5000))}


def check_version(version, command):
    """What holds of every version."""
    for what, arguments in (("at its end", []), ("when it was killed", ["kill"])):
        report = load(run(command, *arguments, MEMSHIM_MODE="track"))
        same(holders(report, report["leaks"]), HELD, f"{version}: five functions hold memory, {what}")
        python = report["run"]["python"]
        same((python["state"], python["version"].split(".")[:2], python["apart"], python["unsure"]),
             ("read", version.split("."), 0, 0), "and all stacks are merged")


def check_ends(command):
    """Out of memory, and a thread without Python."""
    report = load(run(command, "oom"))
    same(report["oom"][0]["requested"], 1 << 50, "out of memory")
    same([f["line"] for f in frames(report, report["oom"][0]["stack"]) if f["kind"] == "python"][:2], [LINES["malloc"], LINES["oom"]],
         "is told with the line that asked")
    report = load(run(command, "thread", THREAD))
    site = next(s for s in report["sites"] if s["total_bytes"] == 7000)
    stack = list(frames(report, site["stack"]))
    marks = [(f["mark"], f.get("name")) for f in stack if f["kind"] == "mark"]
    same(marks, [("thread", "backward_0"), ("inferred", None)], "a thread without Python frames has its name")
    after = stack[[f.get("mark") for f in stack].index("inferred") + 1:]
    same({f["kind"] for f in after}, {"python"}, "and behind a mark the latest of the process")
    same(report["run"]["python"]["inferred"], 1, "which is counted")


def check_hashes(command):
    """Equal in every run."""
    hashes = []
    for seed in ("1", "2"):
        report = load(run(command, PYTHONHASHSEED=seed))
        hashes.append(sorted(s["hash"] for s in report["sites"]))
    same(hashes[0], hashes[1], "the sites of two runs have the same hashes")


def check_off(command):
    """Without Python the report is as it was."""
    report = load(run(command, MEMSHIM_PYTHON="off"))
    same(({f["kind"] for f in report["frames"]}, report["codes"], report["run"]["python"]["state"]), ({"native"}, [], "off"),
         "MEMSHIM_PYTHON=off takes all of it out")
    report = load(run(command, MEMSHIM_STACKS="fp"))
    same((report["run"]["python"]["merged"], report["run"]["python"]["apart"] > 0), (0, True),
         "walks by frame pointers do not tell extents: both stacks are kept apart")


def main():
    """All interpreters."""
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP a sanitizer's library cannot be preloaded into python")
        return
    newest = None
    for version in interpreters.VERSIONS:
        command = interpreters.find(version)
        if command:
            newest = command
            check_version(version, command)
        else:
            global results
            results += 1
            print(f"ok {results} - Python {version} # SKIP is not here")
    if newest:
        check_ends(newest)
        check_hashes(newest)
        check_off(newest)
    print(f"1..{results}")
    sys.exit(failures > 0)


main()
