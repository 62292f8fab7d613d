"""The CPythons that are here, for tests: those on the PATH, pyenv's, and packages that were unpacked beside the system
into the folders 3.9 to 3.15 of $TEST_PYTHONS, which run with their own loader."""

import glob
import os
import subprocess

VERSIONS = [f"3.{minor}" for minor in range(9, 16)]


def works(command, version):
    """Whether it is an interpreter of that version, and starts."""
    try:
        done = subprocess.run([*command, "-c", "import sys, struct, ctypes; print('%d.%d' % sys.version_info[:2])"],
                              capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def unpacked(version):
    """The command that runs an interpreter of a distribution of its own."""
    root = os.path.join(os.environ.get("TEST_PYTHONS", "/nonexistent"), version)
    loaders = glob.glob(os.path.join(root, "**/ld-linux-x86-64.so.2"), recursive=True)
    program = os.path.join(root, "usr/bin/python" + version)
    if not loaders or not os.path.exists(program):
        return None
    folders = [os.path.join(root, f) for f in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
    folders += [os.environ["TEST_SIM"]] if "TEST_SIM" in os.environ else []
    return ["env", "PYTHONHOME=" + os.path.join(root, "usr"), loaders[0], "--library-path", ":".join(folders), program]


def find(version):
    """The words of a command that runs this version; None if it is not here."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = [[path] for path in sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python{version}"))]
    candidates += [[f"/usr/bin/python{version}"], [f"python{version}"], unpacked(version)]
    return next((command for command in candidates if command and works(command, version)), None)
