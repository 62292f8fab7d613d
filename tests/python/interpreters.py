"""The CPythons that are here, for tests: pyenv's, those of the system and on the PATH, and packages that were unpacked beside
the system into the folders 3.9 to 3.15 of $TEST_PYTHONS (by default where scripts/fetch pythons puts them), which run with their
own loader. With $TEST_MACHINE aarch64, packages of that machine, which run under qemu.

interpreters.py LIBRARY...: a line for each one, with LIBRARY preloaded: the version and the words of the command, tabs between
them; of a version that is not here the version alone."""

import glob
import os
import subprocess
import sys

VERSIONS = [f"3.{minor}" for minor in range(9, 16)]
MACHINES = {"x86_64": ("", "ld-linux-x86-64.so.2", []), "aarch64": ("-arm64", "ld-linux-aarch64.so.1", ["qemu-aarch64-static"])}
MACHINE = os.environ.get("TEST_MACHINE", "x86_64")
SUFFIX, LOADER, EMULATOR = MACHINES[MACHINE]
CACHE = os.environ["TEST_CACHE"]
UNPACKED = os.environ.get("TEST_PYTHONS", os.path.join(CACHE, "pythons" + SUFFIX))
PROGRAM = "import sys, os, struct, ctypes; print('%d.%d' % sys.version_info[:2], os.path.realpath('/proc/self/exe'))"


def identity(command, version):
    """Which program it is, if it is an interpreter of that version and starts; else None."""
    try:
        done = subprocess.run([*command, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[1] if done.returncode == 0 and words and words[0] == version else None


def unpacked(version, preload=()):
    """The command that runs an interpreter of a distribution of its own; None if there is none."""
    root = os.path.join(UNPACKED, version)
    loaders = glob.glob(os.path.join(root, "**/" + LOADER), recursive=True)
    program = os.path.join(root, "usr/bin/python" + version)
    if not loaders or not os.path.exists(program):
        return None
    folders = [os.path.join(root, f"{lib}/{MACHINE}-linux-gnu") for lib in ("usr/lib", "lib")]
    folders += [os.environ["TEST_SIM"]] if "TEST_SIM" in os.environ else []
    more = ["--preload", ":".join(preload)] if preload else []
    return ["env", "PYTHONHOME=" + os.path.join(root, "usr"), *EMULATOR, loaders[0], *more, "--library-path", ":".join(folders), program]


def every(version):
    """The commands that run the interpreters of this version, each once."""
    if EMULATOR:
        return [command for command in [unpacked(version)] if command]
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = [[path] for path in sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python{version}"))]
    candidates += [[f"/usr/bin/python{version}"], [f"python{version}"], unpacked(version)]
    found = {}
    for command in candidates:
        program = identity(command, version) if command else None
        if program:
            found.setdefault(program, command)
    return list(found.values())


def find(version):
    """The words of a command that runs this version; None if it is not here."""
    return next(iter(every(version)), None)


def main():
    """The list, for shell scripts."""
    for version in VERSIONS:
        commands = every(version)
        for command in commands:
            preloaded = unpacked(version, sys.argv[1:]) if command[0] == "env" else ["env", "LD_PRELOAD=" + ":".join(sys.argv[1:]), *command]
            print(version, *preloaded, sep="\t")
        if not commands:
            print(version)


if __name__ == "__main__":
    main()
