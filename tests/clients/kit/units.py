"""Runs tests of the unittest kind by their modules' names and writes what became of each: units.py FILE MODULE... [without EXPRESSION...]. Run by suite.py in a client's interpreter, for
suites that bring no pytest with them. Needs nothing of ours.

Each line of FILE is an outcome (passed, failed, skipped) and a test's name; it is written when the test ends, so what came before a crash is there.
"""
import re
import sys
import unittest


class Outcomes(unittest.TestResult):
    """Writes them."""

    def __init__(self, file):
        super().__init__()
        self.file, self.outcome = file, "passed"

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "passed"
        print("begin", test.id(), file=self.file, flush=True)

    def addError(self, test, err):
        self.addFailure(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.outcome = "failed"

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.outcome = "failed"

    def addSkip(self, test, reason):
        self.outcome = "skipped"

    def addExpectedFailure(self, test, err):
        self.outcome = "skipped"

    def stopTest(self, test):
        super().stopTest(test)
        print(self.outcome, test.id(), file=self.file, flush=True)


def chosen(tests, without):
    """Every test, one by one, but for those whose name matches one of these expressions."""
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, without)
        elif not any(re.search(word, test.id()) for word in without):
            yield test


def reason(complaint):
    """The line that says what was raised; a suite may have put its own advice after it."""
    lines = [line for line in complaint.splitlines() if line.strip()] or [""]
    return next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception|Failure|Exit)\b", line)), lines[-1])


def main():
    """See above."""
    words = sys.argv[2:]
    cut = words.index("without") if "without" in words else len(words)
    tests = unittest.defaultTestLoader.loadTestsFromNames(words[:cut])
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        result = Outcomes(file)
        unittest.TestSuite(chosen(tests, words[cut + 1 :])).run(result)
    for test, complaint in result.failures:
        print(test.id(), reason(complaint))


if __name__ == "__main__":
    main()
