"""Runs tests of the pytest kind and writes what became of each, as units.py does: pytests.py FILE MODULE... [without EXPRESSION...]. Run by suite.py in a client's interpreter, which has
a pytest. Needs nothing of ours.

A test may start processes that begin with this file again: it does nothing there. A module that cannot be imported is one outcome: failed, under its name. No file is written beside the packages.
"""
import re
import sys

import pytest


class Outcomes:
    """A plugin that writes them: a test passed if its call did, and neither its making nor its end failed."""

    def __init__(self, file, without):
        self.file, self.without, self.told = file, without, {}

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if not any(re.search(word, item.nodeid) for word in self.without)]

    def pytest_collectreport(self, report):
        if report.failed:
            print("failed", report.nodeid, file=self.file, flush=True)

    def pytest_runtest_logstart(self, nodeid):
        self.told[nodeid] = "passed"
        print("begin", nodeid, file=self.file, flush=True)

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed" and self.told[report.nodeid] != "failed":
            self.told[report.nodeid] = report.outcome

    def pytest_runtest_logfinish(self, nodeid):
        print(self.told.pop(nodeid), nodeid, file=self.file, flush=True)


def main():
    """See above."""
    words = sys.argv[2:]
    cut = words.index("without") if "without" in words else len(words)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        options = ["-q", "--tb=line", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--pyargs"]
        pytest.main(options + words[:cut], plugins=[Outcomes(file, words[cut + 1 :])])


if __name__ == "__main__":
    main()
