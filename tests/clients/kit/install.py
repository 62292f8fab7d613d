#!/usr/bin/env python3
"""Virtual environments with what requirements/NAME.txt pins by hash, in the cache: $XDG_CACHE_HOME/memshim/clients (~/.cache/memshim/clients).

Where a package's own tests are in no wheel, requirements/NAME.sources names archives that have them, a line each: URL sha256:HASH DIRECTORY. What is in that directory of
the archive comes into `sources` of the environment.

  install.py NAME                installs it, once; prints where its python is. What stands in the way is one line, and status 1
  install.py --ready NAME        says by its status whether nothing is left to be fetched
  install.py --pin NAME WORD...  writes requirements/NAME.txt: what pip finds for these packages (names, versions), with the hashes

An environment is made once for what is pinned, and named after it; nothing is fetched afterwards, and nothing is removed: the cache can be, at any time. Called by scripts/test-clients, tests/clients/small.py and scripts/quickstart; two at the same time
wait for each other.
"""
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "memshim", "clients")


class Missing(Exception):
    """Why something cannot be installed here; in one line, and what pip said."""

    def __init__(self, reason, said=""):
        super().__init__(reason)
        self.said = said


def wanted(name):
    """The file that says what to install."""
    return os.path.join(HERE, "requirements", name + ".txt")


def sources(name):
    """The file that says what else."""
    return os.path.join(HERE, "requirements", name + ".sources")


def place(name):
    """The environment: of this list and no other, so that trees with different ones do not take it from each other."""
    return os.path.join(CACHE, "%s-%s" % (name, hashlib.sha256(stamp(name).encode()).hexdigest()[:10]))


def python(name):
    """Its interpreter."""
    return os.path.join(place(name), "bin", "python")


def text(path):
    """What a file holds; nothing, if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def is_ready(name):
    """Whether what is wanted is what was installed, for this python."""
    return text(os.path.join(place(name), "installed")) == stamp(name)


def stamp(name):
    """What `installed` holds."""
    return "# %s\n%s%s" % (sys.version.split()[0], text(wanted(name)), text(sources(name)) or "")


def attempt(words, seconds, reason):
    """A command that has to succeed."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Missing(reason + " within %d s" % seconds) from None
    if done.returncode != 0:
        raise Missing(reason, done.stdout + done.stderr)


def fetch(address, hashed, directory, target):
    """The files below a directory of an archive, which has to be the one that is pinned."""
    with tempfile.TemporaryFile(dir=target) as file:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                shutil.copyfileobj(answer, file)
        except (OSError, urllib.error.URLError) as error:
            raise Missing("%s cannot be fetched: %s" % (address, error)) from None
        file.seek(0)
        if "sha256:" + hashlib.file_digest(file, "sha256").hexdigest() != hashed:
            raise Missing("%s is not the file that is pinned" % address)
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            below = directory.rstrip("/") + "/"
            for member in archive:
                if member.isfile() and member.name.startswith(below):
                    member.name = member.name[len(below) :]
                    archive.extract(member, os.path.join(target, "sources"), filter="data")


def make(name, seconds):
    """The environment, made anew beside nothing."""
    target = place(name)
    shutil.rmtree(target, ignore_errors=True)
    attempt([sys.executable, "-m", "venv", target], 120, "python3 cannot make a virtual environment")
    pip = [python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
    options = ["--only-binary", ":all:", "--retries", "1", "--timeout", "20"]
    attempt(pip + options + ["--no-deps", "--require-hashes", "-r", wanted(name)], seconds,
            "the packages cannot be installed from PyPI for Python %d.%d on %s" % (*sys.version_info[:2], os.uname().machine))
    for line in (text(sources(name)) or "").splitlines():
        if line and not line.startswith("#"):
            fetch(*line.split(), target)
    with open(os.path.join(target, "installed"), "w", encoding="utf-8") as file:
        file.write(stamp(name))


def install(name, seconds=3600):
    """The interpreter of the environment, which is made unless it is there."""
    if not os.path.exists(wanted(name)):
        raise Missing("there is no requirements/%s.txt" % name)
    if is_ready(name):
        return python(name)
    try:
        os.makedirs(CACHE, exist_ok=True)
        with open(os.path.join(CACHE, name + ".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_ready(name):
                make(name, seconds)
    except OSError as error:
        raise Missing("the packages cannot be kept in %s: %s" % (CACHE, error.strerror)) from None
    return python(name)


def pin(name, words):
    """Writes the file, from what pip would install."""
    os.makedirs(CACHE, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        attempt([sys.executable, "-m", "venv", work], 120, "python3 cannot make a virtual environment")
        found = os.path.join(work, "found.json")
        attempt([os.path.join(work, "bin", "python"), "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", found, *words],
                1800, "pip does not find %s" % " ".join(words))
        rows = json.loads(text(found))["install"]
    with open(wanted(name), "w", encoding="utf-8") as file:
        file.write("# Made by tests/clients/kit/install.py --pin %s %s\n" % (name, " ".join(words)))
        for row in sorted(rows, key=lambda row: row["metadata"]["name"].lower()):
            file.write("%s==%s --hash=sha256:%s\n" % (row["metadata"]["name"], row["metadata"]["version"], row["download_info"]["archive_info"]["hashes"]["sha256"]))


def main():
    """See above."""
    words = sys.argv[1:]
    try:
        if words[:1] == ["--pin"] and len(words) > 2:
            pin(words[1], words[2:])
        elif words[:1] == ["--ready"] and len(words) == 2:
            sys.exit(0 if is_ready(words[1]) else 1)
        elif len(words) == 1 and not words[0].startswith("-"):
            print(install(words[0]))
        else:
            raise SystemExit("usage: install.py [--ready] NAME | --pin NAME WORD...")
    except Missing as reason:
        print(reason)
        for line in reason.said.splitlines()[-20:]:
            print("# " + line)
        sys.exit(1)


if __name__ == "__main__":
    main()
