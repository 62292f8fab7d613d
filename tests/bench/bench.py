"""scripts/bench follow --json: the form that scripts rely on, and figures that can be true; `flows` runs. Short runs; prints TAP."""

import json
import os
import shutil
import subprocess
import sys

KEYS = ["allocator", "api", "threads", "stacks", "frames", "live_blocks", "ns_per_pair", "cpu_ns_per_pair", "ratio_to_native", "added_ns_per_pair",
        "ledger_bytes_per_block", "report_s", "report_mib"]
ALLOCATORS = ["native", "memshim-stacks-off", "memshim-stacks-fp", "memshim"]
WALKS = ["frame-pointer", "backtrace"]
FRAMES = [8, 16, 64]


def depths_seen():
    """How deep the stacks are that memshim finds where the bench says that it has FRAMES of them."""
    build = os.environ["top_builddir"]
    seen = []
    for frames in FRAMES:
        path = os.path.join(os.environ["TEST_TMP"], f"{frames}.json")
        env = {**os.environ, "LD_LIBRARY_PATH": build, "LD_PRELOAD": os.path.join(build, "libmemshim.so"), "MEMSHIM_MODE": "track",
               "MEMSHIM_STACK_DEPTH": "256", "MEMSHIM_REPORT": path}
        subprocess.run([os.path.join(build, "tests/bench/follow"), "cuMemAlloc", "1", "1", str(frames)], env=env,
                       stdout=subprocess.DEVNULL, check=True)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        stack = max((site for site in report["sites"] if site["api"] == "cuMemAlloc_v2"),
                    key=lambda site: site["total_count"])["stack"]
        depth = 0
        while stack:
            stack = report["stacks"][stack][0]
            depth += 1
        seen.append(depth)
    return seen


def bench(*words):
    """What a bench prints, as data: its status and errors, and {"rows": []} where it failed."""
    done = subprocess.run([os.path.join(os.environ["top_srcdir"], "scripts/bench"), *words, "--json", "--no-build"], capture_output=True,
                          text=True, check=False, env={**os.environ, "BUILD_DIR": os.environ["top_builddir"]})
    return done.returncode, done.stderr.strip().replace("\n", " "), json.loads(done.stdout) if done.returncode == 0 else {"rows": []}


def flows_run():
    """`flows` runs, and finds each flow's way: which is longer through the slow path than through the fast one."""
    if "TEST_EMULATED" in os.environ or not shutil.which("valgrind") or not shutil.which("addr2line"):
        return True, "scripts/bench flows runs # SKIP it needs valgrind and binutils, and no emulation"
    status, errors, report = bench("flows")
    rows = {row["flow"]: row for row in report["rows"]}
    sound = list(rows) == ["hit", "queued", "pool", "ledger"] and all(
        row["instructions"] > row["functions"] >= row["files"] > 1 and row["changes_of_file"] >= row["files"] for row in rows.values())
    return (status == 0 and sound and rows["hit"]["functions"] < rows["queued"]["functions"] < rows["ledger"]["functions"],
            f"scripts/bench flows runs, and finds its way: {errors} {rows}")


def main():
    """Runs the bench once and looks at its rows."""
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP figures mean nothing under a sanitizer")
        return
    status, errors, report = bench("follow", "--rounds", "1", "--milliseconds", "10")
    facts = [flows_run()]
    facts.append((status == 0, "the bench runs: " + errors))
    rows = report["rows"]
    facts.append((list(report) == ["name", "machine", "rows"], "its JSON has a name, a machine and rows"))
    facts.append((rows and all(list(row) == KEYS for row in rows), "every row has the same keys"))
    facts.append(([row["allocator"] for row in rows] == ALLOCATORS * 9 + (ALLOCATORS + WALKS) * 3 + ALLOCATORS * 3,
                  "each case has a row for each variant"))
    facts.append(([row["frames"] for row in rows if row["allocator"] == "backtrace"] == FRAMES, "stacks of each depth are walked"))
    facts.append((depths_seen() == FRAMES, "and are as deep as the rows say"))
    facts.append((all(row["ns_per_pair"] > 0 for row in rows), "every figure is a time"))
    facts.append((all(row["ratio_to_native"] == 1 for row in rows if row["allocator"] == "native"),
                  "the ratio is to native of the same run"))
    many = [row for row in rows if row["live_blocks"] == 1000000 and row["allocator"] != "native"]
    facts.append((many and all(64 <= row["ledger_bytes_per_block"] < 128 for row in many), "a live block takes less than 128 bytes"))
    facts.append((many and all(row["report_s"] > 0 and row["report_mib"] < 200 for row in many),
                  "the report of a million live blocks takes some time, and less than 200 MiB"))
    print(f"1..{len(facts)}")
    for number, (holds, name) in enumerate(facts, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    sys.exit(not all(holds for holds, _ in facts))


main()
