"""What the tests of the Python package share: TAP, the package itself, and the environment with pandas and pytest, if it is there."""
import os
import subprocess
import sys

TOP = os.environ["top_srcdir"]
PACKAGE = os.path.join(TOP, "python")
REPORTS = os.path.join(TOP, "tests", "python", "reports")
sys.dont_write_bytecode = True
sys.path[:0] = [PACKAGE, os.path.join(TOP, "tests", "hooks"), os.path.join(TOP, "tests", "clients")]
from hooklib import fact, plan, skip  # noqa: E402, F401
from kit import install  # noqa: E402

OPTIONAL = "python"  # tests/clients/requirements/python.txt


def skip_all(reason):
    """Says why nothing is tested, and ends."""
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def need_command():
    """Ends where no program can be run under memshim."""
    if os.environ.get("TEST_SANITIZE"):
        skip_all("a sanitizer's library cannot be preloaded into python3")
    if not os.path.exists(os.environ["TEST_BIN"]) or not os.path.exists(os.environ["TEST_LIB"]):
        skip_all("the memshim command is not built")


def optional_python():
    """The interpreter of the environment that scripts/test-python installs; ends where it is not there."""
    if not install.is_ready(OPTIONAL):
        skip_all("pandas, matplotlib, Dask and pytest are not installed (scripts/test-python does that)")
    return install.python(OPTIONAL)


def again_with_packages():
    """Goes on as the same program in that environment."""
    python = optional_python()
    if os.path.realpath(sys.prefix) != os.path.realpath(install.place(OPTIONAL)):
        os.execv(python, [python, "-B", *sys.argv])


def kept_reports():
    """Reports of earlier memshims, oldest first by the time that they say."""
    import memshim

    paths = [os.path.join(REPORTS, name) for name in os.listdir(REPORTS)]
    return sorted(paths, key=lambda path: memshim.read(path).run.start_unix_ns)


def record(program, report, *words, **variables):
    """The report of a program in Python on the simulated GPU."""
    command = [os.environ["TEST_BIN"], "run", "--sim", "-o", report, "--", sys.executable, program, *words]
    done = subprocess.run(command, env=dict(os.environ, **variables), capture_output=True, text=True, check=False)
    if done.returncode != 0 or not os.path.exists(report):
        raise SystemExit("not ok 1 - %s ended with %d\n# %s" % (program, done.returncode, done.stderr))
    return report


def raised(kind, call, *arguments):
    """What it says as it refuses; nothing if it does not."""
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    return ""
