#!/usr/bin/env python3
"""What `memshim check` writes, opened by the tools that it is for: sarif-tools and junitparser. Run by scripts/test-exports, with their interpreter; prints TAP."""
import json
import os
import subprocess
import sys

import junitparser
from sarif import loader

DATA = os.path.join(os.environ["top_srcdir"], "tests", "cli", "data", "train.json")
TMP = os.environ["TEST_TMP"]


def main():
    """Two facts for each tool."""
    sarif, junit = os.path.join(TMP, "check.sarif"), os.path.join(TMP, "check.xml")
    done = subprocess.run([os.environ["TEST_BIN"], "check", "-f", "--json", "--sarif", sarif, "--junit", junit, "--max-peak", "1M", "--max-leak", "1G", "--max-leak", "1", DATA],
                          stdout=subprocess.PIPE, check=False)
    failed = [row for row in json.loads(done.stdout)["checks"] if not row["held"]]
    seen = loader.load_sarif_file(sarif)
    records = seen.get_records()
    suites = list(junitparser.JUnitXml.fromfile(junit))
    cases = [case for suite in suites for case in suite]
    facts = [
        ("sarif-tools: as many errors as failed", len(records) == len(failed) and all(record["Severity"] == "error" for record in records), records),
        ("sarif-tools: the rules and the lines", [(record["Code"], record["Line"]) for record in records] == [("memshim/" + row["figure"], row["own"]["line"]) for row in failed], records),
        ("junitparser: as many cases and failures", (suites[0].tests, suites[0].failures) == (3, len(failed)), suites),
        ("junitparser: what failed is what failed", [len(case.result) for case in cases] == [1, 0, 1], [case.result for case in cases]),
    ]
    for i, (name, passed, details) in enumerate(facts, 1):
        print("%sok %d - %s" % ("" if passed else "not ", i, name))
        if not passed:
            print("# %s" % details)
    print("1..%d" % len(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
