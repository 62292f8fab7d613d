"""What the tests of tests/oom share: what a report tells, and how what it advises is done."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM  # noqa: E402


def told(path):
    done = subprocess.run([MEMSHIM, "oom", "--json", path], text=True, capture_output=True, check=False)
    return json.loads(done.stdout)["oom"] if done.returncode == 0 else []


def do_it(fit, variables):
    """The words and variables that do what a row of would_fit says."""
    if fit["how"] == "wait":
        return ["wait"], variables
    if fit["how"] == "policy":
        return [], dict(variables, **{fit["name"]: fit["value"]})
    return [("free=%d" if fit["how"] == "free" else "most=%d") % fit["bytes"]], variables
