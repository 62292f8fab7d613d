#!/usr/bin/env python3
"""pytest-memshim over the tests of limits/: those that pass, leak or are too large, on the simulated GPU; beside xdist; what else may go
wrong. Skipped where scripts/test-python has not installed pytest."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader  # noqa: E402
from reader import fact  # noqa: E402

reader.need_command()
PYTHON = reader.optional_python()
COMMAND, TMP = os.environ["TEST_BIN"], os.environ["TEST_TMP"]
LIMITS = os.path.join(reader.TOP, "tests", "python", "limits")
MINE = ["--memshim", "--memshim-sim", "--memshim-command", COMMAND]


def pytest(*words, folder=LIMITS, program=("-m", "pytest"), **variables):
    """What pytest says of a folder, with the plugin as it lies in the tree."""
    environment = dict(os.environ, PYTHONPATH=reader.PACKAGE, PYTHONDONTWRITEBYTECODE="1", COLUMNS="200", **variables)
    command = [PYTHON, *program, "-p", "memshim.testing.plugin", "-p", "no:cacheprovider", "-rA", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def outcomes(done):
    """PASSED, FAILED ... by the name of the test."""
    return {re.sub(r"\[x{300}\]", "[long]", name): outcome for outcome, name in re.findall(r"^(PASSED|FAILED|XFAIL|ERROR) \S*::(\S+)", done.stdout, re.MULTILINE)}


def line_of(file, part):
    """The line that has this."""
    with open(os.path.join(LIMITS, file), encoding="utf-8") as source:
        return 1 + next(number for number, line in enumerate(source) if part in line)


def limits():
    """Every test of the folder, and what is said of those that fail."""
    report = os.path.join(TMP, "kept.json")
    done = pytest(*MINE, "--memshim-report", report)
    found = outcomes(done)
    wrong = {name: outcome for name, outcome in found.items() if ("fails" in name or "long" in name) != (outcome == "FAILED")}
    fact(len(found) == 16 and not wrong and done.returncode == 1, "tests pass and fail as their names say", [wrong, *done.stdout.splitlines()[-30:], done.stderr])
    at = line_of("gpu.py", "runtime.cudaMalloc(")
    large = "gpu.py:%d: the test held 25.0 MiB of memory on cuda 0 at its peak, limit_gpu_memory allows 24.0 MiB" % at
    by = "20.0 MiB  cudaMalloc, in allocate at gpu.py:%d, called at test_limits.py:%d" % (at, line_of("test_limits.py", "20 * MIB"))
    fact(large in done.stdout and by in done.stdout, "what was too large is told with its line, and the test's", done.stdout.splitlines())
    leak = "gpu.py:%d: the test left 5.0 MiB of memory on cuda 0 in 2 blocks, limit_gpu_leaks allows 0 B" % at
    by = "3.0 MiB  cudaMalloc, in allocate at gpu.py:%d, called at test_limits.py:%d" % (at, line_of("test_limits.py", "3 * MIB"))
    fact(leak in done.stdout and by in done.stdout, "and what leaked", done.stdout.splitlines())
    own = done.stdout.split("_ test_fails_by_itself _")[1].split("= PASSES =")[0]
    fact("its own reason" in own and "the test held" not in own, "a test that fails by itself fails for its own reason", own.splitlines())
    fact("90.0 MiB of memory on cuda 0 at its peak, limit_gpu_memory allows 81.9 MiB" in done.stdout, "a share is one of the device's memory")
    with open(report, encoding="utf-8") as file:
        phases = {phase["name"]: phase["devices"][0]["peak_bytes"]["max"] >> 20 for phase in json.load(file)["phases"]}
    told = [peak for name, peak in phases.items() if "::test_fails_large" in name]
    fact(told == [126] and "pytest" in phases and max(len(name.encode()) for name in phases) <= 255, "the report is kept, with a phase for each test", [phases])


def first():
    """The very first memory of a device is a test's, in no fixture."""
    folder = os.path.join(TMP, "first")
    os.mkdir(folder)
    with open(os.path.join(folder, "test_first.py"), "w", encoding="utf-8") as file:
        file.write("import gpu, pytest\n@pytest.mark.limit_gpu_memory('24 MB')\ndef test_fails():\n    gpu.free(gpu.allocate(5 << 20))\n    gpu.free(gpu.allocate(25 << 20))\n"
                   "@pytest.mark.limit_gpu_memory('24 MB')\ndef test_passes():\n    gpu.free(gpu.allocate(24 << 20))\n")
    done = pytest(*MINE, folder=folder, program=("-c", "import sys, pytest; sys.path.insert(0, %r); sys.exit(pytest.main(sys.argv[1:]))" % LIMITS))
    fact(outcomes(done) == {"test_fails": "FAILED", "test_passes": "PASSED"}, "a test that is the first to use a device is held to its limit", [done.stdout, done.stderr])


def without():
    """The marks where memshim is not."""
    done = pytest("-k", "passes or fails", LD_LIBRARY_PATH=os.environ["TEST_SIM"])
    found = outcomes(done)
    fact(found.pop("test_fails_by_itself") == "FAILED" and found.pop("test_passes_expected") == "FAILED" and set(found.values()) == {"PASSED"} and len(found) == 13,
         "without memshim the marks hold nobody", [found, *done.stdout.splitlines()[-20:], done.stderr])
    done = subprocess.run([COMMAND, "run", "--sim", "--", PYTHON, "-m", "pytest", "-p", "memshim.testing.plugin", "-p", "no:cacheprovider", "-rA", "-k", "large",
                           "--memshim-command", COMMAND], cwd=LIMITS, capture_output=True, text=True, check=False,
                          env=dict(os.environ, PYTHONPATH=reader.PACKAGE, PYTHONDONTWRITEBYTECODE="1", MEMSHIM_REPORT="none"))
    fact(outcomes(done) == {"test_fails_large": "FAILED"} and "memshim: active" in done.stdout, "under memshim run they hold with no option", [done.stdout, done.stderr])


def workers():
    """xdist's, which are processes of their own."""
    done = pytest(*MINE, "-n", "2", "-k", "large or leaky or passes")
    found = outcomes(done)
    wrong = {name: outcome for name, outcome in found.items() if ("fails" in name) != (outcome == "FAILED") and outcome != "XFAIL"}
    fact(len(found) == 12 and not wrong and "gpu.py:" in done.stdout, "in two processes of xdist too", [wrong, *done.stdout.splitlines()[-30:], done.stderr])


WRONG = os.path.join(TMP, "wrong")


def wrong_test(mark, *words, **variables):
    """What pytest says of a test with this mark."""
    with open(os.path.join(WRONG, "test_wrong.py"), "w", encoding="utf-8") as file:
        file.write("import pytest\n@pytest.mark.%s\ndef test_it():\n    pass\n" % mark)
    done = pytest(*words, folder=WRONG, **variables)
    return done.returncode, done.stdout + done.stderr


def mistakes():
    """What is said of them: one line, and the status of wrong usage."""
    folder, said = WRONG, wrong_test
    os.mkdir(folder)
    status, text = said('limit_gpu_memory("24 MX")', "--strict-markers")
    fact(status == 4 and "test_it: limit_gpu_memory: '24 MX' is not a size" in text and "1.5G" in text, "a size that is none is named at once", [text])
    status, text = said("limit_gpu_memory")
    fact(status == 4 and "test_it: limit_gpu_memory takes one size" in text, "a mark without a size too", [text])
    status, text = said('limit_gpu_memory("1K")', "--memshim", "--memshim-command", os.path.join(TMP, "nowhere"))
    fact(status == 4 and "there is no program" in text and "--memshim-command" in text, "a command that is not there is named", [text])
    broken = os.path.join(folder, "broken")
    with open(broken, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\n[ "$1" != recover ] || { echo "memshim recover: no" >&2; exit 1; }\nexec %s "$@"\n' % COMMAND)
    os.chmod(broken, 0o755)
    status, text = said('limit_gpu_memory("1K")', *MINE[:-1], broken)
    fact(status == 1 and "memshim could not measure the test: memshim recover: no" in text, "what cannot be measured fails", [text])


def more_mistakes():
    """And of others."""
    folder, said = WRONG, wrong_test
    status, text = said('limit_gpu_memory("1K")', *MINE)
    fact(status == 0, "a test without any GPU holds every limit", [text])
    status, text = said('limit_gpu_memory("1K")', *MINE, MEMSHIM_MODE="off")
    fact(status == 4 and "not active" in text, "memshim that does nothing is told", [text])
    status, text = said('limit_gpu_memory("1K")', "-k", "nothing", *MINE)
    fact(status == 5, "the exit status is pytest's", [text])
    program = os.path.join(folder, "program.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write("import sys, pytest\nsys.exit(pytest.main(['--memshim', *sys.argv[1:]]))\n")
    done = pytest(folder=folder, program=(program,))
    fact(done.returncode == 4 and "memshim run -- PROGRAM" in done.stderr, "a program that calls pytest is told what to do", [done.stdout, done.stderr])


WHOLE = bool(os.environ.get("TEST_PACKAGE"))
reader.plan(18 if WHOLE else 13)
limits()
first()
without()
mistakes()
if WHOLE:
    workers()
    more_mistakes()
