"""Line tables of every CPython that is here, decoded by the command's own code: every instruction of a part of its
standard library has the line that the interpreter says. Speaks TAP."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import interpreters  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DECODER = os.path.join(os.environ.get("top_builddir", "."), "tests/python/line_tables")
MODULES = os.environ.get("LINES_MODULES", "40")


def main():
    """One interpreter after the other."""
    print(f"1..{len(interpreters.VERSIONS)}")
    failed = False
    for number, version in enumerate(interpreters.VERSIONS, 1):
        command = interpreters.find(version)
        if not command:
            print(f"ok {number} - Python {version} # SKIP is not here")
            continue
        done = subprocess.run([*command, os.path.join(HERE, "lines_of.py"), os.path.abspath(DECODER), MODULES],
                              capture_output=True, text=True, check=False)
        failed |= done.returncode != 0
        print(f"{'not ok' if done.returncode else 'ok'} {number} - Python {version}: {done.stdout.strip()}")
        if done.returncode:
            print("\n".join("# " + line for line in done.stderr.splitlines()))
    sys.exit(failed)


main()
