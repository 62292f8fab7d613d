"""Runs one program of a client: natively on the simulator, or under `memshim run --sim`. Knows where the build is; judges nothing.

What a program finds is told by `memshim run --sim` itself: natively it gets the same environment without memshim's own library, so nothing is listed twice. What a wheel
carries under a name of its own, `memshim run --sim` displaces (docs/internals/simulator.md); natively its directory of links is one of this run's.
"""
import collections
import glob
import os
import subprocess

RECOVERED = "recovered"  # a mode for what is killed: by variables alone, so that nothing but `memshim recover` makes the report
MODES = {"pool": {"MEMSHIM_MODE": "pool"}, "track": {"MEMSHIM_MODE": "track"}, "vmm": {"MEMSHIM_BACKING": "vmm"}}
Outcome = collections.namedtuple("Outcome", "status out err place")  # place: where reports and traces are; None natively


def clean_environment(cache):
    """What every program gets: nothing of ours or of the loader's, no file written beside the wheels."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("MEMSHIM_", "MEMSIM_", "LD_", "CUDA_", "PYTHON", "TEST_", "VIRTUAL_ENV"))}
    return {**keep, "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": os.path.join(cache, "pyc"), "PYTHONUNBUFFERED": "1"}


class Bench:
    """A build of memshim, an interpreter, and a directory for what the runs write."""

    def __init__(self, build, interpreter, cache, temporary):
        self.memshim = os.path.join(build, "memshim")
        self.interpreter, self.temporary = interpreter, temporary
        self.environment = clean_environment(cache)
        self.environment["MEMSHIM_DIR"] = os.path.join(temporary, "ledgers")
        os.makedirs(self.environment["MEMSHIM_DIR"], exist_ok=True)
        self.loaded = self._loaded()
        self.preload = {**self.loaded, "LD_PRELOAD": ":".join(path for path in self.loaded["LD_PRELOAD"].split(":") if os.path.basename(path) != "libmemshim.so")}

    def words(self, client, one):
        """What starts a run's program: its interpreter, or what the compiler made of it."""
        if not one.program.endswith((".c", ".cc")):
            return [self.interpreter, one.program, *one.arguments]
        made = os.path.join(self.temporary, "programs", os.path.basename(one.program))
        if not os.path.exists(made):
            os.makedirs(os.path.dirname(made), exist_ok=True)
            compiler = ["c++", "-std=c++20"] if one.program.endswith(".cc") else ["cc", "-std=gnu11"]
            given = [word.replace("{site}", self.packages()).replace("{build}", os.path.dirname(self.memshim)) for word in client.build]
            done = subprocess.run([*compiler, "-w", "-I", os.path.dirname(one.program), one.program, *given, "-ldl", "-pthread", "-o", made], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError("%s: %s" % (one.program, done.stderr[-2000:]))
        return [made, *one.arguments]

    def packages(self):
        """The environment's site-packages."""
        return glob.glob(os.path.join(os.path.dirname(os.path.dirname(self.interpreter)), "lib", "python3*", "site-packages"))[0]

    def _loaded(self):
        """What memshim run --sim puts before a program, as variables; natively it is the same but for memshim."""
        done = subprocess.run([self.memshim, "run", "--sim", "-o", "none", "--", "env"], env=self.environment, capture_output=True, text=True, check=True)
        told = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith(("LD_", "MEMSIM_DISPLACE=")))
        links = os.path.join(self.temporary, "links")
        os.makedirs(links, exist_ok=True)
        return {name: value.replace(told["MEMSIM_DISPLACE"], links) for name, value in told.items()}

    def say(self, *words):
        """What the command says."""
        return subprocess.run([self.memshim, *words], env=self.environment, cwd=self.temporary, capture_output=True, text=True, check=True).stdout

    def run(self, mode, words, variables, seconds=600):
        """The program, in one of MODES or natively (None)."""
        environment = {**self.environment, **variables}
        place = None
        if mode is None:
            environment.update(self.preload)
        else:
            place = os.path.join(self.temporary, mode + str(len(os.listdir(self.temporary))))
            os.makedirs(place)
            if mode == RECOVERED:
                return self._recovered(words, environment, place, seconds)
            environment.update(MODES[mode])
            words = [self.memshim, "run", "--sim", "-o", os.path.join(place, "%p.json"), "--trace", os.path.join(place, "%p.trace"), "--", *words]
        return self._start(words, environment, place, seconds)

    def _recovered(self, words, environment, place, seconds):
        """A program that is killed, whose ledger is made a report."""
        environment.update(self.loaded, MEMSHIM_DIR=place, MEMSHIM_REPORT=os.path.join(place, "%p.json"))
        outcome = self._start(words, environment, place, seconds)
        self.say("recover", "-o", os.path.join(place, "recovered.json"), place)
        return outcome

    def _start(self, words, environment, place, seconds):
        """The program itself."""
        try:
            done = subprocess.run(words, env=environment, cwd=self.temporary, capture_output=True, text=True, errors="replace", timeout=seconds, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired as late:
            return Outcome(-1, decode(late.stdout), decode(late.stderr) + "\nstill running after %d s" % seconds, place)
        return Outcome(done.returncode, done.stdout, done.stderr, place)


def decode(text):
    """What was said until then, which is bytes or nothing."""
    return (text or b"").decode("utf-8", "replace") if not isinstance(text, str) else text
