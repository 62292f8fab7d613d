#!/usr/bin/env python3
"""Ledgers and traces that others made: nothing that stands in them makes a user who looks at them write anywhere, and a
ledger of one's own completes the trace of its own process alone, which is never written into. Prints TAP."""
import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("ledger", "hooks")]
import hooklib  # noqa: E402
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment, skip, trace_lines  # noqa: E402
from ledgerfile import Ledger  # noqa: E402
from needs import lacking  # noqa: E402

NOBODY = 65534
SHARED = TMP + "/shared"
TRACE = TMP + "/its.trace"
SCRIPT = "# memshim for everybody who logs in\nexport X=1\n"
PAYLOAD = b"# memshim\ntouch /pwned\n"


def killed():
    """A ledger of a program that was killed with lines of its trace still in it."""
    place = TMP + "/place"
    os.makedirs(place, exist_ok=True)
    env = shim_environment("none", MEMSHIM_DIR=place, MEMSHIM_TRACE=TRACE)
    with subprocess.Popen([BUILD + "/tests/ledger/many", "100", "100000"], env=env, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.kill()
    name, = (name for name in os.listdir(place) if name.endswith(".ledger"))
    return place + "/" + name


def identity(path):
    """A file, as the process's row says which one its trace is."""
    status = os.stat(path)
    return struct.pack("<2Q", status.st_dev, status.st_ino)


def plant(source, path, target, owner=None, lines=PAYLOAD):
    """A ledger that says that `target` is its trace, and has lines for it: these for the whole of it, or its own."""
    made = Ledger(source)
    text = made.read("TEXT", 0, made.rows("TEXT"))
    text = text[:text.index(b"trace=/")] + b"trace=" + target.encode() + b"\0"
    made.write("TEXT", 0, text)
    made.set_rows("TEXT", len(text))
    place = made.read("PROCESS", 0, 1024).index(identity(TRACE))
    made.write("PROCESS", place, identity(target))
    if lines:
        made.write("PROCESS", place + 16, struct.pack("<3Q", 0, len(lines), 0))
        made.write("TRACE", 0, lines)
    made.save(path, owner)


def command(*arguments):
    """memshim, where the shared directory is the place for ledgers: its status, and all that it said."""
    env = dict(os.environ, MEMSHIM_DIR=SHARED)
    done = subprocess.run([MEMSHIM, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def content(path):
    """What the file has."""
    with open(path, encoding="latin-1") as file:
        return file.read()


def own(source):
    """One's own ledgers: each completes the trace that its process made, by a new file, and no other file."""
    victim = TMP + "/victim.sh"
    with open(victim, "w", encoding="ascii") as file:
        file.write(SCRIPT)
    plant(source, SHARED + "/memshim-4712-1.ledger", victim)
    _, said = command("recover", SHARED)
    fact(content(victim) == SCRIPT and "another file" in said, "a file that begins like a trace is none", [said])
    head = content(TRACE).split("\n")[0]
    shutil.copy(TRACE, TMP + "/like.trace")
    with open(TMP + "/like.trace", "r+", encoding="latin-1") as file:
        file.write(re.sub("run [0-9a-f]{16}", "run " + "0" * 16, head))
    before = content(TMP + "/like.trace")
    plant(source, SHARED + "/memshim-4713-1.ledger", TMP + "/like.trace", lines=b"")
    _, said = command("recover", "-f", SHARED)
    fact(content(TMP + "/like.trace") == before and "another file" in said, "nor is a trace of another run", [said])
    old = os.stat(TRACE)
    os.link(TRACE, TMP + "/second")
    before = content(TRACE)
    status, said = command("recover", "-f", "-o", TMP + "/r.json", source)
    after = content(TRACE)
    fact(status == 0 and len(after) > len(before) and after.startswith(before.rstrip("\0")) and
         len([line for line in trace_lines(TRACE) if line.split()[1] == "a"]) == 100 and not os.path.exists(source),
         "its own process's trace is completed", [status, said, after[:300]])
    fact(content(TMP + "/second") == before and os.stat(TRACE).st_mode == old.st_mode and
         sorted(name for name in os.listdir(TMP) if "tmp" in name) == [], "... by a new file that takes its name",
         [os.listdir(TMP)])


def others(source):
    """As root: what another user left in a place where all may write."""
    victim, planted = TMP + "/roots.sh", SHARED + "/memshim-4711-1.ledger"
    with open(victim, "w", encoding="ascii") as file:
        file.write(SCRIPT)
    plant(source, planted, victim, NOBODY)
    for verb in (["recover", SHARED], ["recover", "4711"], ["snapshot", "4711"], ["top", "-n", "1"], ["top", "4711"],
                 ["metrics", "--textfile", "-"]):
        _, said = command(*verb)
        fact(content(victim) == SCRIPT and os.listdir(SHARED) == ["memshim-4711-1.ledger"] and
             said.count("another user's and left out") == 1, "%s leaves it alone, and says so" % " ".join(verb[:1]), [said])
    status, said = command("recover", "-o", "-", planted)
    fact(status == 0 and content(victim) == SCRIPT and "with the rights of that user" in said and "cannot be added" in said,
         "named by its file it is read, with its owner's rights", [status, said[-500:]])


def main():
    """First others', for the ledger is removed when it was recovered."""
    if lacking():
        return
    os.mkdir(SHARED)
    os.chmod(SHARED, 0o1777)
    os.chmod(TMP, 0o755)
    source = killed()
    if os.geteuid() == 0:
        others(source)
    else:
        skip("other users' ledgers", "only root can make files of others")
    for name in os.listdir(SHARED):
        os.unlink(os.path.join(SHARED, name))
    own(source)
    plan(hooklib.number)


main()
