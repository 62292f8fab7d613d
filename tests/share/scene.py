"""Processes on a simulated device of 4 GiB that they share, told line by line what to do (guest.c)."""
import json
import os
import subprocess

from hooklib import BUILD, MEMSHIM, TMP, native_environment, shim_environment

PROGRAM = os.path.join(BUILD, "tests", "share", "guest")
KINDS = {"d": "cudaMalloc", "s": "cudaMallocAsync", "m": "cudaMallocManaged", "h": "cuMemCreate", "r": "cuArray3DCreate"}
NO_MEMORY = 2
WAIT = {"MEMSHIM_OOM_WAIT_MS": "200"}
scenes = 0


class Scene:
    """A device of 4 GiB, and the processes on it."""
    def __init__(self, **more):
        global scenes
        scenes += 1
        self.where = os.path.join(TMP, "scene%d" % scenes)
        self.more, self.guests = more, []
        for name in ("device", "pages"):
            os.makedirs(os.path.join(self.where, name))

    def page(self):
        return os.path.join(self.where, "pages", "memshim-share-%d-6d656d73696d40008000000000000001" % os.geteuid())

    def guest(self, native=False, **more):
        report = os.path.join(self.where, "report%d.json" % len(self.guests))
        variables = {"MEMSIM_LEDGER": os.path.join(self.where, "device"), "MEMSIM_MEMORY": "4G",
                     "MEMSHIM_DIR": os.path.join(self.where, "pages"), **self.more, **more}
        environment = native_environment(**variables) if native else shim_environment(report, **variables)
        guest = Guest(environment, report)
        self.guests.append(guest)
        return guest

    def top(self, how):
        environment = native_environment(MEMSHIM_DIR=os.path.join(self.where, "pages"), COLUMNS="200")
        return subprocess.run([MEMSHIM, "top", "--count", "1", how], env=environment, text=True, capture_output=True, check=True).stdout

    def end(self):
        for guest in self.guests:
            guest.end()


class Guest:
    """One process, told line by line."""
    def __init__(self, environment, report=None, command=(PROGRAM,), where=None):
        self.report, self.ended = report, False
        self.process = subprocess.Popen(command, env=environment, cwd=where, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return [int(word) for word in self.process.stdout.readline().split()]

    def do(self, line):
        self.say(line)
        return self.hear()[0]

    def ask(self):
        self.say("m")
        return self.hear()[1:]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.ended = True

    def end(self):
        """What it wrote to standard error."""
        if self.ended:
            return ""
        self.ended = True
        return self.process.communicate()[1]

    def told(self, key):
        with open(self.report, encoding="utf-8") as report:
            return json.load(report).get(key)
