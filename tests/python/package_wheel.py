#!/usr/bin/env python3
"""The Python package as a wheel: built and installed offline into an empty environment, where it reads reports and where pytest finds its
plugin; and what mypy says of it. Skipped where scripts/test-python has not installed what builds it."""
import os
import shutil
import subprocess
import sys
import venv
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reader  # noqa: E402
from reader import fact  # noqa: E402

PYTHON, TMP = reader.optional_python(), os.environ["TEST_TMP"]


def run(*words, **more):
    """A command, with what it says, and no network."""
    environment = dict(os.environ, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", no_proxy="*", **more)
    return subprocess.run([str(word) for word in words], cwd=TMP, env=environment, capture_output=True, text=True, check=False)


def wheel():
    """Built from a copy of the sources alone."""
    source = os.path.join(TMP, "source")
    shutil.copytree(reader.PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
    done = run(PYTHON, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", TMP, source)
    made = [name for name in os.listdir(TMP) if name.endswith(".whl")]
    fact(done.returncode == 0 and len(made) == 1 and made[0].endswith("-py3-none-any.whl"), "a wheel of no machine is built offline", [done.stdout, done.stderr, made])
    path = os.path.join(TMP, made[0])
    names = zipfile.ZipFile(path).namelist()
    files = {"memshim/" + os.path.relpath(os.path.join(folder, name), os.path.join(source, "memshim"))
             for folder, _, found in os.walk(os.path.join(source, "memshim")) for name in found}
    fact(files <= set(names) and any(name.endswith("LICENSE") for name in names) and "memshim/py.typed" in names, "it has every file of the package, and the licence", names)
    return path


def empty(path):
    """An environment with nothing in it."""
    place = os.path.join(TMP, "empty")
    venv.create(place, with_pip=False)
    python = os.path.join(place, "bin", "python")
    done = run(PYTHON, "-m", "pip", "--python", python, "install", path)
    fact(done.returncode == 0, "it is installed with nothing beside it", [done.stdout, done.stderr])
    program = ("import memshim, sys; reports = memshim.load(sys.argv[1:]); print(sum(device.peak_live_bytes for report in reports for device in report.devices))\n"
               "try: reports.sites\nexcept memshim.MissingPackage as error: print(error)")
    done = run(python, "-I", "-c", program, *reader.kept_reports())
    fact(done.stdout.split("\n")[:2] == [str(len(reader.kept_reports()) * (12 << 20)), "pandas is not installed: pip install 'memshim[frames]'"],
         "there it reads reports, and says what brings the rest", [done.stdout, done.stderr])


def beside_pytest(path):
    """Where pytest is, it is its plugin."""
    place = os.path.join(TMP, "beside")
    done = run(PYTHON, "-m", "pip", "install", "--no-deps", "--target", place, path)
    told = run(PYTHON, "-m", "pytest", "--help", PYTHONPATH=place).stdout
    fact(done.returncode == 0 and "--memshim-report" in told and "limit_gpu_memory" in run(PYTHON, "-m", "pytest", "--markers", PYTHONPATH=place).stdout,
         "pytest finds its options and marks by itself", [done.stderr, told[-500:]])


def types():
    """mypy, of the package and of who uses it."""
    done = run(PYTHON, "-m", "mypy", "--config-file", os.path.join(reader.PACKAGE, "pyproject.toml"), "--cache-dir", os.path.join(TMP, "mypy"), MYPYPATH=reader.PACKAGE)
    fact(done.returncode == 0 and "no issues" in done.stdout, "mypy has nothing to say", [done.stdout, done.stderr])
    user = os.path.join(TMP, "user.py")
    with open(user, "w", encoding="utf-8") as file:
        file.write("import memshim\nreport = memshim.read('x')\nreveal_type(report.devices[0].peak_live_bytes)\nreveal_type(memshim.load(['x'], engine='dask'))\n"
                   "reveal_type(memshim.load('x')[0])\n")
    said = run(PYTHON, "-m", "mypy", "--strict", "--cache-dir", os.path.join(TMP, "mypy"), user, MYPYPATH=reader.PACKAGE).stdout
    fact('"int"' in said or '"builtins.int"' in said, "who uses it gets types", [said])
    fact("DaskReports" in said and "memshim.report.Report" in said, "of what load returns too", [said])


WHOLE = bool(os.environ.get("TEST_PACKAGE"))
reader.plan(8 if WHOLE else 5)
built = wheel()
empty(built)
beside_pytest(built)
if WHOLE:
    types()
