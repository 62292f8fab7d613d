"""What the tests of systems share: a program natively and under memshim, on the simulator, and what the driver made meanwhile."""
import json
import os
import re
import subprocess
import sys

TOP = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(TOP, "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, native_environment, shim_environment  # noqa: E402

HERE = os.path.join(BUILD, "tests", "systems")


class Run:
    """One run of a program: status, output, what it said was made, and its report."""

    def __init__(self, command, report=None, **environment):
        environment = {"MEMSIM_COUNT": "1", **environment}
        self.report_path = report and os.path.join(TMP, report + ".json")
        env = shim_environment(self.report_path, **environment) if report else native_environment(**environment)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.made = [(what, int(count)) for what, count in re.findall(r"^made (.*) (-?\d+)$", done.stderr, re.M)]

    def of(self, what):
        """What was made in each round of this name."""
        return [count for name, count in self.made if name == what]

    def report(self):
        with open(self.report_path, encoding="utf-8") as file:
            return json.load(file)

    def sound(self):
        """What does not hold of a report in which everything was freed: lines."""
        valid = subprocess.run([os.environ["TEST_VALID"], self.report_path], capture_output=True, text=True, check=False)
        if valid.returncode:
            return [valid.stderr]
        report = self.report()
        lines = ["%d frees of something never seen" % report["coverage"]["unseen_frees"]] if report["coverage"]["unseen_frees"] else []
        return lines + ["leaked: %s" % leak for leak in report["leaks"]]

    def shown(self):
        return [*self.output.splitlines(), *self.errors.splitlines()[-8:], "status %d" % self.status]
