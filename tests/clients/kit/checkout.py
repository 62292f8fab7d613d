"""A checkout of a vendor's repository that the user names (scripts/test-clients --checkout NAME=DIR), for suites
that are in no wheel: whether it has what a section's `checkout` asks for, and which commit it is of. Only
reads.

What is in the way is install.Missing, one line: the client is then skipped, with it as the reason.
"""
import hashlib
import os
import subprocess

from . import install


class Checkout:
    """The folder with the tests, and what they are of, in words."""

    def __init__(self, folder, origin):
        self.folder, self.origin = folder, origin


def read(words, clients):
    """client -> directory, of NAME=DIR as the user says it; a line for what it cannot be."""
    named = {}
    for word in words:
        name, _, directory = word.partition("=")
        able = [client.name for client in clients if client.checkout]
        if name not in able or not directory:
            raise SystemExit("--checkout %s: it is NAME=DIR, and NAME one of %s" % (word, ", ".join(able)))
        named[name] = os.path.abspath(directory)
    return named


def find(client, named):
    """The checkout for this client; install.Missing says why there is none."""
    below, imports = client.checkout
    top = named.get(client.name)
    if top is None:
        raise install.Missing("no package has its tests: scripts/test-clients --checkout %s=DIR names a checkout"
                              % client.name)
    folder = os.path.join(top, below)
    for name in dict.fromkeys(["conftest.py"] + " ".join(client.suite).split()):
        if not os.path.exists(os.path.join(folder, name)):
            raise install.Missing("%s is none that is expected: it has no %s/%s" % (top, below, name))
    conftest = os.path.join(below, "conftest.py")
    if imports not in (install.text(os.path.join(top, conftest)) or ""):
        raise install.Missing("%s is of another version: %s does not import %s" % (top, conftest, imports))
    return Checkout(folder, commit(top) or "files %s" % digest(top))


def git(top, *words):
    """What git says there; nothing where it says no."""
    try:
        done = subprocess.run(["git", "-C", top, *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit(top):
    """The commit, if this is the top of a checkout of git's: a folder inside of another one is none of it."""
    if os.path.realpath(git(top, "rev-parse", "--show-toplevel") or "/") != os.path.realpath(top):
        return ""
    found = git(top, "rev-parse", "--short=12", "HEAD")
    return found and "commit %s%s" % (found, ", changed" if git(top, "status", "--porcelain") else "")


def digest(top):
    """The first digits of a hash over all Python files, by name: what tells them apart without git."""
    found = hashlib.sha256()
    for place, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(name for name in names if name.endswith(".py")):
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                held = hashlib.sha256(file.read()).hexdigest()
            found.update(("%s %s\n" % (held, os.path.relpath(path, top))).encode())
    return "sha256:" + found.hexdigest()[:12]
