#!/usr/bin/env python3
"""A job of several processes of which one has no memory: what each held at that moment is kept, whatever it does just then, once, and becomes one job report. memshim
snapshot --job has the same of processes that go on. Prints TAP."""
import json
import os
import resource
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, native_environment, plan, shim_environment  # noqa: E402

GUEST = os.path.join(BUILD, "tests", "share", "guest")
MANY = os.path.join(BUILD, "tests", "ledger", "many")
NO_MEMORY, MIB = 2, 1 << 20
scenes = 0


class Rank:
    """A process of a job, told line by line (tests/share/guest.c)."""
    def __init__(self, program, environment, report, **how):
        self.report = report
        self.process = subprocess.Popen(program, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return int(self.process.stdout.readline().split()[0])

    def do(self, line):
        self.say(line)
        return self.hear()


class Job:
    """Its processes, on a device of 4 GiB."""
    def __init__(self, **more):
        global scenes
        scenes += 1
        self.where = os.path.join(TMP, "job%d" % scenes)
        self.more = {"SLURM_JOB_ID": "4711", **more}
        self.ledgers = os.path.join(self.where, "ledgers")
        self.ranks = []
        for name in ("device", "ledgers"):
            os.makedirs(os.path.join(self.where, name))

    def rank(self, mib=0, program=(GUEST,), how=None, **more):
        report = os.path.join(self.where, "rank%d.json" % len(self.ranks))
        variables = {"MEMSIM_LEDGER": os.path.join(self.where, "device"), "MEMSIM_MEMORY": "4G", "MEMSHIM_DIR": self.ledgers, "MEMSHIM_OOM_WAIT_MS": "200",
                     "RANK": str(len(self.ranks)), **self.more, **more}
        rank = Rank(list(program), dict(shim_environment(report), **variables), report, **(how or {}))
        self.ranks.append(rank)
        if mib:
            assert rank.do("a 1 d %d" % mib) == 0
        return rank

    def directories(self):
        return sorted(name for name in os.listdir(self.ledgers) if name.startswith("memshim-job-"))

    def copies(self):
        return sorted(os.path.join(self.ledgers, one, name) for one in self.directories() for name in os.listdir(os.path.join(self.ledgers, one)))

    def command(self, *words):
        return subprocess.run([MEMSHIM, *words], env=native_environment(MEMSHIM_DIR=self.ledgers, MEMSHIM_DIR_KEEP=self.more.get("MEMSHIM_DIR_KEEP", "86400")),
                              cwd=self.where, text=True, capture_output=True, check=False)

    def merged(self):
        """The job report of the copies."""
        done = self.command("merge", "-f", "-o", "job.json", *self.copies())
        return self.read("job.json") if done.returncode == 0 else {"ranks": [], "said": done.stderr}

    def read(self, name):
        path = os.path.join(self.where, name)
        valid = subprocess.run([os.environ["TEST_VALID"], path], env=native_environment(), text=True, capture_output=True, check=False)
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file), valid=valid.returncode == 0 or valid.stdout + valid.stderr)

    def end(self):
        """What they wrote to standard error."""
        said = []
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.send_signal(signal.SIGCONT)
                said.append(rank.process.communicate()[1])
        return "".join(said)


def held(report):
    """MiB that each rank has live, and that its call sites say."""
    return [(rank.get("rank"), rank["live_bytes"] // MIB, sum(bytes for _, bytes in rank.get("live", [])) // MIB) for rank in report["ranks"]]


def at_any_rate():
    """One is stopped, one makes no call, one was killed before."""
    job = Job()
    first, stopped, idle, killed = (job.rank(mib) for mib in (100, 200, 300, 400))
    stopped.process.send_signal(signal.SIGSTOP)
    killed.process.kill()
    killed.process.wait()
    status = first.do("a 2 d 8000")
    report = job.merged()
    fact(status == NO_MEMORY and held(report) == [(0, 100, 100), (1, 200, 200), (2, 300, 300)] and report["valid"] is True,
         "what each held is kept, also of one that is stopped and one that makes no call", [status, held(report), report.get("valid"), report.get("said")])
    ranks = report["ranks"]
    fact([rank["ooms"] for rank in ranks] == [1, 0, 0] and len({rank["at_unix_ns"] // 10 ** 9 for rank in ranks}) <= 2 and
         all(rank["at_unix_ns"] > rank["start_unix_ns"] for rank in ranks), "and who had none, at which time", ranks)
    before = [(name, os.stat(name).st_mtime_ns, os.stat(name).st_ino) for name in job.copies()]
    stopped.process.send_signal(signal.SIGCONT)
    again = [first.do("a 2 d 8000"), first.do("a 2 d 8000"), idle.do("a 2 d 8000")]
    fact(again == [NO_MEMORY] * 3 and before == [(name, os.stat(name).st_mtime_ns, os.stat(name).st_ino) for name in job.copies()],
         "later ones change nothing: the first of a job counts", [again, before])
    text = job.command("summary", "job.json").stdout
    fact("allocated when they were looked at:\n  rank 0           100.0 MiB, had no memory; 100.0 MiB by" in text, "the summary shows each, who had no memory first", [text])
    said = job.end()
    fact(said.count("no memory: what 3 processes of this job held is in") == 1 and "memshim merge -o FILE" in said, "one line says where", [said])


def at_once():
    """Two of them at the same moment, again and again: one set of copies, and each process once."""
    wrong = []
    for turn in range(3 if WATCHED else 10):
        job = Job(SLURM_JOB_ID=str(turn))
        ranks = [job.rank(100) for _ in range(4)]
        for rank in ranks:
            rank.say("a 2 d 8000")
        if [rank.hear() for rank in ranks] != [NO_MEMORY] * 4:
            wrong.append("a status")
        if [row[:2] for row in held(job.merged())] != [(0, 100), (1, 100), (2, 100), (3, 100)]:
            wrong.append((turn, job.copies(), held(job.merged())))
        job.end()
    fact(not wrong, "two at the same moment: each process is kept once", wrong)


def who_is_of_it():
    """Another job, no job, no reports, one process alone."""
    for name, variables, others in (("another job's", {}, {"SLURM_JOB_ID": "4712"}), ("no job's", {"SLURM_JOB_ID": ""}, {}),
                                    ("a process that makes no report", {"MEMSHIM_REPORT": "none"}, {})):
        job = Job(**variables)
        one = job.rank(100)
        job.rank(100, **others)
        status = one.do("a 2 d 8000")
        job.end()
        fact(status == NO_MEMORY and not job.directories(), "nothing is kept: %s" % name, [status, job.copies()])
    for name, variables in (("torchrun's", {"SLURM_JOB_ID": "", "MASTER_ADDR": "here", "MASTER_PORT": "29500"}), ("Open MPI's", {"SLURM_JOB_ID": "", "PMIX_NAMESPACE": "prte-1"})):
        job = Job(**variables)
        one = job.rank(100)
        job.rank(100)
        one.do("a 2 d 8000")
        fact(len(job.copies()) == 2, "%s processes are a job" % name, job.copies())
        job.end()


def what_may_stand_there():
    """In the place of the directory; the place of ledgers; a limit for files; copies of an earlier job of the same name."""
    job = Job()
    one = job.rank(100)
    job.rank(100)
    one.do("a 2 d 8000")
    name, = job.directories()
    job.end()
    for what in ("a file", "a link", "another's directory"):
        job = Job()
        path = os.path.join(job.ledgers, name)
        if what == "a file":
            open(path, "w", encoding="ascii").close()
        elif what == "a link":
            os.symlink("/", path)
        else:
            os.mkdir(path, 0o777)
            os.chmod(path, 0o777)
        one = job.rank(100)
        job.rank(100)
        status = one.do("a 2 d 8000")
        inside = os.listdir(path) if what == "another's directory" else []
        said = job.end()
        fact(status == NO_MEMORY and not inside and not said, "%s in its place: nothing is kept, and the program runs as without" % what, [status, inside, said])
    job = Job(MEMSHIM_DIR="/proc/1")
    one = job.rank(100)
    job.rank(100)
    status = one.do("a 2 d 8000")
    job.end()
    fact(status == NO_MEMORY, "no ledger has a file: the program runs as without", [status])
    job = Job()
    os.mkdir(os.path.join(job.ledgers, name), 0o700)
    old = os.path.join(job.ledgers, name, "memshim-1-1.copy")
    open(old, "w", encoding="ascii").close()
    os.utime(old, (1, 1))
    one = job.rank(100)
    job.rank(100)
    one.do("a 2 d 8000")
    fact(len(held(job.merged())) == 2 and old not in job.copies(), "copies of an earlier job of that name go", job.copies())
    job.end()


def limited():
    """A process whose files may be no longer than its own ledger is not ended for another's, which is longer."""
    job = Job()
    long = subprocess.Popen([MANY, "40000", "100000"], stdout=subprocess.PIPE, env=shim_environment(os.path.join(job.where, "many.json"), MEMSHIM_DIR=job.ledgers, SLURM_JOB_ID="4711"))
    long.stdout.readline()
    longer, = [os.stat(os.path.join(job.ledgers, name)).st_size for name in os.listdir(job.ledgers) if name.endswith(".ledger")]
    one = job.rank(100, how={"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (longer - 65536, longer - 65536))})
    status = one.do("a 2 d 8000")
    fact(status == NO_MEMORY and len(held(job.merged())) == 1, "a limit for files: what is longer is left out, and no signal comes", [status, longer, job.copies()])
    job.end()
    long.kill()
    long.wait()
    long.stdout.close()


def by_a_framework():
    """PyTorch's allocator asks again when the vendor refuses: what counts is the moment at which it has no memory itself."""
    job = Job()
    job.rank(100)
    inner = os.path.join(BUILD, "tests", "inner")
    one = job.rank(program=(os.path.join(inner, "inner_user"), "refused", "2"), MEMSIM_LEDGER="", MEMSIM_MEMORY="64M", LD_LIBRARY_PATH="%s:%s" % (os.environ["TEST_SIM"], inner))
    one.process.stdout.read()
    one.process.wait()
    copy = [name for name in job.copies() if "-%d-" % one.process.pid in name]
    rows = [json.loads(job.command("oom", "--json", "--layer", layer, name).stdout)["oom"] for name in copy for layer in ("tensors", "blocks")]
    fact(len(copy) == 1 and [len(row) for row in rows] == [1, 2], "a framework's first error takes the place of the vendor's refusals before it", [job.copies(), rows])
    job.end()


def of_a_run():
    """memshim run makes the job report of them, beside the others, and cleans up."""
    script = '{ echo a 1 d 300; sleep 3; } | "$0" >/dev/null & { sleep 1; echo a 1 d 200; echo a 2 d 8000; sleep 1; } | "$0" >/dev/null; wait'
    job = Job()
    environment = native_environment(MEMSIM_LEDGER=os.path.join(job.where, "device"), MEMSIM_MEMORY="4G", MEMSHIM_DIR=job.ledgers, MEMSHIM_OOM_WAIT_MS="200")
    done = subprocess.run([MEMSHIM, "run", "--sim", "--", "sh", "-c", script, GUEST], env=environment, cwd=job.where, text=True, capture_output=True, check=False)
    report = job.read("memshim.job.oom.json") if os.path.exists(os.path.join(job.where, "memshim.job.oom.json")) else {"ranks": []}
    fact(done.returncode == 0 and sorted(row[1] for row in held(report)) == [200, 300] and report["valid"] is True, "memshim run makes one job report of it",
         [done.returncode, done.stderr, held(report), os.listdir(job.where)])
    fact("had no memory: what each of 2 processes of its job held then is in" in done.stderr and not job.directories(), "says so, and leaves no copies", [done.stderr, job.copies()])


def from_outside():
    """memshim snapshot --job."""
    job = Job()
    ranks = [job.rank(mib) for mib in (100, 200, 300)]
    job.rank(50, SLURM_JOB_ID="4712")
    ranks[1].process.send_signal(signal.SIGSTOP)
    done = job.command("snapshot", "--job", str(ranks[0].process.pid))
    report = job.read("memshim.job.snapshot.json")
    fact(done.returncode == 0 and held(report) == [(0, 100, 100), (1, 200, 200), (2, 300, 300)] and report["valid"] is True and "3 processes go on" in done.stderr,
         "memshim snapshot --job: each process of that job, and no other's", [done.stderr, held(report), report["valid"]])
    again = job.command("snapshot", "--job", str(ranks[1].process.pid))
    fact(again.returncode == 0 and os.path.exists(os.path.join(job.where, "memshim.job.snapshot-2.json")), "by any of its processes, under a name that is not there", [again.stderr])
    alone = job.rank(10, SLURM_JOB_ID="")
    refused = job.command("snapshot", "--job", str(alone.process.pid))
    fact(refused.returncode == 2 and "is of no job" in refused.stderr, "a process of no job is refused", [refused.stderr])
    job.end()


def cleaned():
    """What nobody read goes by the rule for ledgers."""
    job = Job()
    one = job.rank(100)
    job.rank(100)
    one.do("a 2 d 8000")
    job.end()
    name, = job.directories()
    stays = job.command("clean")
    told = job.command("doctor")
    job.more["MEMSHIM_DIR_KEEP"] = "0"
    time.sleep(0.1)
    goes = job.command("clean")
    fact("%s  " % name in stays.stdout and ": stays" in stays.stdout and "of a job" in stays.stdout and "1 ledger" in told.stdout and ": removed" in goes.stdout and not job.directories(),
         "memshim clean removes them when they are old", [stays.stdout, stays.stderr, told.stdout, goes.stdout, goes.stderr])


def main():
    plan(24)
    for scene in (at_any_rate, at_once, who_is_of_it, what_may_stand_there, limited, by_a_framework, of_a_run, from_outside, cleaned):
        scene()


main()
