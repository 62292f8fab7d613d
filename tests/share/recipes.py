#!/usr/bin/env python3
"""The three recipes of docs/user/sharing.md, as they stand there, with the installed tool: the page's own command lines, with a guest for the
program that they name. What the page promises of each is true, and without the recipe's word it would not be."""
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "share"))
from hooklib import BUILD, TMP, WATCHED, fact, native_environment, plan, skip  # noqa: E402
from scene import NO_MEMORY, PROGRAM, Guest  # noqa: E402

SOURCE = os.environ["top_srcdir"]
INSTALLED = os.path.join(TMP, "installed")
POD_FACTS, GROUP = 7, "54321"
GIB = 1024


def as_user(user):
    """The words before a command that is a user's, in a user namespace of its own."""
    return ["setpriv", "--reuid", user, "--regid", user, "--groups", GROUP, "unshare", "--user", "--map-root-user"]


def recipes():
    """The command lines of each, by its heading: without comments."""
    with open(os.path.join(SOURCE, "docs", "user", "sharing.md"), encoding="utf-8") as page:
        found = re.findall(r"^### ([^\n]*)\n\n```\n(.*?)```", page.read(), re.M | re.S)
    return {name: [line for line in lines.splitlines() if line and not line.startswith("#")] for name, lines in found}


def install():
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "-C", BUILD, "-s", "install", "prefix=" + INSTALLED], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Card:
    """A device, and what runs on it by lines of the page."""
    def __init__(self, memory):
        self.where = os.path.join(TMP, "card%d" % len(os.listdir(TMP)))
        self.guests, self.variables = [], {"MEMSIM_MEMORY": memory, "MEMSHIM_OOM_WAIT_MS": "200"}
        for name in ("device", "pages"):
            os.makedirs(os.path.join(self.where, name))

    def run(self, line, program="exec " + PROGRAM):
        """The line with another program."""
        environment = native_environment(MEMSIM_LEDGER=os.path.join(self.where, "device"), MEMSHIM_DIR=os.path.join(self.where, "pages"), **self.variables)
        environment["PATH"] = os.path.join(INSTALLED, "bin") + ":" + environment["PATH"]
        wanted = line[:line.index(" -- ")] + " -- sh -c '%s'" % program
        self.guests.append(Guest(environment, command=("sh", "-c", wanted), where=self.where))
        return self.guests[-1]

    def end(self):
        return [guest.end() for guest in self.guests]


def servers(lines):
    """On a card of 80 GiB."""
    for words, turn in (("in the page's order", 1), ("in the other order", -1)):
        card = Card("80G")
        there = {}
        for line in lines[::turn]:
            there[line.split()[-1]] = guest = card.run(line)
            guest.do("a 0 d 1")
        large, small = there["large"], there["small"]
        fact([large.ask()[1], small.ask()[1]] == [60 * GIB, 30 * GIB], "two servers, %s: they are told of 60 and 30 GiB" % words, [large.ask(), small.ask()])
        first = small.ask()[0]
        fact(small.do("a 1 d %d" % (first - 40)) == 0, "all that the small one is told is free can be had: %d MiB" % first, [first])
        fact(large.do("a 1 d %d" % (40 * GIB - 40)) == 0, "and the large one finds its 40 GiB")
        fact(large.do("a 2 d %d" % (15 * GIB)) == NO_MEMORY, "what is nobody's guarantee the small one has, that asked first")
        fact(small.do("f 1") == 0 and large.do("a 2 d %d" % (15 * GIB)) == 0, "and when that is freed it goes to the large one")
        fact(small.do("a 1 d %d" % (16 * GIB - 40)) == 0, "the small one finds its 16 GiB then")
        card.end()


def notebooks(line):
    """Two of them; what the page says of a notebook without MEMSHIM_YIELD=thread is true as well."""
    for words, command, status in (("the page's line", line, 0), ("without MEMSHIM_YIELD=thread", line.replace("MEMSHIM_YIELD=thread ", ""), NO_MEMORY)):
        card = Card("4G")
        # The kernel of a notebook is a child of the program that memshim ran.
        left, other = [card.run(command, "echo ${PYTORCH_NO_CUDA_MEMORY_CACHING-0}; %s; exit $?" % PROGRAM) for _ in range(2)]
        fact([left.hear(), other.hear()] == [[1], [1]], "notebooks, %s: a framework is told to keep nothing itself" % words)
        for order in ("a 9 d 1", "w", "a 1 d 1000", "a 2 d 2000", "f 2"):
            left.do(order)
        other.do("a 9 d 1")
        got = other.do("a 1 d 2500")
        fact(got == status, "what is free in one that was left alone another one has, or has not: status %d" % got)
        left.do("w")
        fact(status == 0 or other.do("a 1 d 2500") == 0, "or it has that after the first one's next call")
        fact(other.do("a 2 d 900") == NO_MEMORY and left.do("f 1") == 0 and other.do("a 2 d 900") == 0, "its tensors it keeps, until it frees them")
        card.end()


def room_is_there():
    done = subprocess.run(["sh", os.path.join(SOURCE, "tests", "containers", "room.sh"), "--check", "--"], capture_output=True, check=False)
    return done.returncode == 0 and os.geteuid() == 0 and all(map(shutil.which, ("unshare", "chroot", "mount")))


def pod(user, line, node, group=GROUP, how=""):
    """A container with its own user, process ids and /dev/shm of 64 MiB, in which the group's directory is mounted."""
    environment = native_environment(MEMSIM_MEMORY="64G", MEMSHIM_OOM_WAIT_MS="200")
    del environment["MEMSHIM_DIR"]
    environment["LD_LIBRARY_PATH"] = "/opt/memshim/lib/memshim/sim"
    command = ["sh", os.path.join(SOURCE, "tests", "containers", "room.sh"), "--user", user, *(["--group", group] if group else []),
               "--volume", INSTALLED + ":/opt/memshim:ro", "--volume", os.path.join(TMP, "app") + ":/app:ro",
               *(["--volume", node + ":/run/memshim/team" + how] if node else []), "--", "sh", "-c",
               "cd /tmp && umask 077 && PATH=/opt/memshim/bin:$PATH && " + line[:line.index(" -- ")] + " -- /app/guest"]
    return Guest(environment, command=command)


def rootless(user, line, node):
    """In a user namespace in which root has no number; a chroot lets nobody make one, so this is none."""
    environment = dict(native_environment(MEMSIM_MEMORY="64G", MEMSHIM_OOM_WAIT_MS="200"), LD_LIBRARY_PATH=os.path.join(INSTALLED, "lib", "memshim", "sim"))
    del environment["MEMSHIM_DIR"]
    line = line[:line.index(" -- ")].replace("GROUP=team", "GROUP=" + node)
    return Guest(environment, command=[*as_user(user), "sh", "-c", "cd /tmp && umask 077 && PATH=%s/bin:$PATH && %s -- %s/app/guest" % (INSTALLED, line, TMP)])


def in_user_namespaces(line, node):
    if subprocess.run([*as_user("20001"), "ls", node, os.path.join(TMP, "app", "guest")], capture_output=True, check=False).returncode:
        return skip("processes in user namespaces", "they are not allowed here, or cannot reach this directory")
    one, other = rootless("20001", line, node), rootless("20002", line, node)
    statuses = [guest.do("a 1 d %d" % mib) for guest, mib in ((other, 1), (one, 39 * GIB), (other, 26 * GIB), (other, 23 * GIB))]
    said = [[text for text in guest.end().splitlines() if " warn " in text] for guest in (one, other)]
    return fact(statuses == [0, 0, NO_MEMORY, 0] and not any(said), "so do processes find each other in user namespaces that have no number for root", [statuses, said])


def pods(prepare, line):
    """The simulated driver knows processes by their ids, so each pod's is its own here, and what holds is the page alone."""
    run = os.path.join(TMP, "run")
    node = os.path.join(run, "memshim", "team")
    os.chmod(TMP, 0o755)
    os.mkdir(os.path.join(TMP, "app"))
    shutil.copy(PROGRAM, os.path.join(TMP, "app"))
    done = subprocess.run(["sh", "-c", prepare.replace("/run/", run + "/").replace("chgrp team ", "chgrp %s " % GROUP)], capture_output=True, text=True, check=False)
    fact(done.returncode == 0 and not done.stderr, "pods: the node's line prepares the directory", [done.stderr])
    one, other = pod("20001", line, node), pod("20002", line, node)
    one.do("a 0 d 1")
    other.do("a 0 d 1")
    fact(one.ask()[1] == 40 * GIB and other.ask()[1] == 40 * GIB, "two users' pods are told of 40 GiB each", [one.ask(), other.ask()])
    fact([one.do("a 1 d %d" % (39 * GIB)), other.do("a 1 d %d" % (26 * GIB)), other.do("a 1 d %d" % (24 * GIB))] == [0, NO_MEMORY, 0],
         "and find each other's memory, and 20 GiB of their own")
    one.end()
    fact(other.do("a 2 d %d" % (15 * GIB)) == 0, "a pod that ends returns its share")
    alone = [pod("20003", line, node, group=None), pod("20004", line, None), pod("20005", line, node, how=":ro")]
    ran = [guest.do("a 1 d %d" % (39 * GIB)) for guest in alone]
    said = [[text for text in guest.end().splitlines() if " warn " in text] for guest in alone]
    fact(ran == [0] * 3 and [len(lines) for lines in said] == [1] * 3 and
         all(why in lines[0] for why, lines in zip(("Permission denied", "No such file", "Read-only file system"), said)),
         "without the group, or the directory, or where that is read-only, a pod runs as it would alone and says so in one line", [ran, said])
    fact(not [text for text in other.end().splitlines() if " warn " in text] and os.listdir(node) == ["memshim-share-6d656d73696d40008000000000000001"],
         "the others said nothing, and there is one page", os.listdir(node))
    in_user_namespaces(line, node)


if WATCHED:
    print("1..0 # SKIP a sanitizer's library cannot be preloaded into a plain program")
    sys.exit(0)
PAGE = recipes()
plan(1 + 12 + 8 + POD_FACTS)
fact(list(PAGE) == ["Two servers on one card", "Notebooks", "Pods without partitioning"] and list(map(len, PAGE.values())) == [2, 1, 2], "the page has three recipes", [PAGE])
install()
servers(PAGE["Two servers on one card"])
notebooks(PAGE["Notebooks"][0])
if room_is_there():
    pods(*PAGE["Pods without partitioning"])
else:
    for _ in range(POD_FACTS):
        skip("pods", "namespaces and root are needed")
