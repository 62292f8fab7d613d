"""What the tests of the inner layer share: programs of tests/inner with memshim, and what the command says of their reports."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, native_environment, shim_environment  # noqa: E402

DIRECTORY = os.path.join(BUILD, "tests", "inner")
USER = os.path.join(DIRECTORY, "inner_user")
reports = 0


def play(*words, **more):
    """What the program said, and the path of its report."""
    global reports
    reports += 1
    path = os.path.join(TMP, "%d.json" % reports)
    environment = shim_environment(path, MEMSHIM_LOG="none", **more)
    environment["LD_LIBRARY_PATH"] += ":" + DIRECTORY
    return subprocess.run([USER, *words], env=environment, text=True, capture_output=True, timeout=200, check=False), path


def begin(*words, **more):
    """A program that goes on, with its first line; MEMSHIM_DIR is where the tests are."""
    environment = shim_environment("none", MEMSHIM_LOG="none", MEMSHIM_DIR=TMP, **more)
    environment["LD_LIBRARY_PATH"] += ":" + DIRECTORY
    process = subprocess.Popen([USER, *words], env=environment, text=True, stdout=subprocess.PIPE)
    return process, process.stdout.readline()


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def findings(path):
    done = subprocess.run([MEMSHIM, "findings", "--json", path], env=native_environment(), text=True, capture_output=True, check=False)
    return json.loads(done.stdout)["findings"]


def screen(verb, path, *words):
    done = subprocess.run([MEMSHIM, verb, *words, path], env=native_environment(), text=True, capture_output=True, check=False)
    return done.stdout + done.stderr
