#!/usr/bin/env python3
"""Small programs, each shaped after a public report or found in use, natively and under memshim: what each must print,
and what its report must say. One function a case; a fact that depends on how long something takes has no place here."""
import json
import operator
import os
import re
import resource
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", room) for room in ("hooks", "html")]
import hooklib  # noqa: E402
import page_format  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, native_environment, shim_environment, skip  # noqa: E402

HERE = os.path.join(os.environ["top_builddir"], "tests", "cases")
CASES = []
runs = 0


def case(function):
    CASES.append(function)
    return function


class Run:
    """A program that has ended: its status, what it printed, and its report's path."""

    def __init__(self, done, report):
        self.status, self.said, self.report = done.returncode, done.stdout + done.stderr, report

    def number(self, pattern):
        """The number behind this in what was printed, or None."""
        found = re.search(pattern + r" (-?\d+)", self.said)
        return int(found.group(1)) if found else None

    def load(self):
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)

    def told(self):
        """What a failed fact shows."""
        return ["status %d" % self.status] + self.said.splitlines()


def run(program, *arguments, native=False, **more):
    """Runs a program of this folder, natively or under memshim, with more environment."""
    global runs
    runs += 1
    report = os.path.join(TMP, "%d.json" % runs)
    more = dict({"MEMSIM_COUNT": "1"}, **more)
    environment = native_environment(**more) if native else shim_environment(report, MEMSHIM_LOG="none", **more)
    command = [os.path.join(HERE, program)] + [str(argument) for argument in arguments]
    return Run(subprocess.run(command, env=environment, text=True, capture_output=True, timeout=250, check=False), report)


def memshim(*arguments):
    """The command itself."""
    done = subprocess.run([MEMSHIM] + list(arguments), env=os.environ, text=True, capture_output=True, timeout=250,
                          check=False)
    return Run(done, None)


@case
def asked():
    """What a loop asks for again and again stays, and who else has come is not asked at each wait: the driver takes long over it."""
    done = run("asked", 200)
    fact(done.status == 0 and done.number("kept") == 800 and done.number("asked") <= 20, "asked: 800 MiB stay, and questions are few", done.told())


@case
def kept():
    """Blocks that were freed before a wait: no more than MEMSHIM_KEEP of them stays."""
    for arguments in ((1, 7000), (7, 1000), (3, 100), (1, 7000, 500), (2, 300, 100)):
        live = arguments[2] if len(arguments) > 2 else 0
        for more in ({}, {"MEMSHIM_BACKING": "vmm"}, {"MEMSHIM_PACK": "none"}, {"MEMSHIM_KEEP": "0"}):
            done = run("kept", *arguments, **more)
            keep = 0 if "MEMSHIM_KEEP" in more else 256
            fact(done.status == 0 and live <= done.number("taken") <= live + keep + 2,
                 "kept %s, %s: at most MEMSHIM_KEEP beside what is live" % (arguments, more), done.told())


@case
def graph_owed():
    """Memory of a graph that no node frees is the program's: a leak where it is not freed, and frees that are refused are findings."""
    rules = {2: ["interior_free"], 4: ["double_free"]}
    for way in range(9):
        native, done = run("graph_owed", way, native=True), run("graph_owed", way)
        report = done.load()
        leaked = [(leak["bytes"], leak["count"], leak["kind"], report["sites"][leak["site"]]["api"], report["sites"][leak["site"]]["stack"] > 0)
                  for leak in report["leaks"]]
        wanted = [(64 << 20, 1, "graph", "cudaMallocAsync", True)] if way in (3, 6) else []
        if way == 8:
            leaked, wanted = sum(leak[0] for leak in leaked), (64 + 150) << 20
        found = [finding["rule"] for finding in report["findings"] if finding["rule"] in ("double_free", "interior_free")]
        fact(native.said == done.said and leaked == wanted and found == rules.get(way, []) and not report["coverage"]["unseen_frees"],
             "graph_owed %d: what leaks, and which frees are findings" % way, native.told() + done.told() + [leaked, report["findings"]])
        checked = memshim("check", "--max-leak", "0", done.report)
        fact(checked.status == (1 if wanted else 0), "graph_owed %d: a limit of leaks sees it" % way, checked.told())


@case
def opened():
    """Others' memory that is open to the end is shown as imported, by line, is a finding, and is not the device's."""
    for how, each in (("ipc", 20 << 20), ("fd", 2 << 20)):
        path = os.path.join(TMP, "opened-%s.json" % how)
        done = run("opened", path, how)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        imported = {row["kind"]: row for row in report["memory"]}.get("imported", {})
        fact(done.status == 0 and imported.get("live_bytes") == imported.get("peak_live_bytes") == 8 * each and imported.get("live_count") == 8 and
             all(device["live_bytes"] == device["followed_bytes"] == 0 for device in report["devices"]) and not report["leaks"],
             "opened by %s: eight blocks are imported, and nothing is the device's" % how, done.told() + [report["memory"], report["devices"]])
        said = memshim("summary", path).said
        fact(re.search(r"^Imported +%d\.0 MiB of others' memory; %d\.0 MiB in 8 blocks still open: .*opened\.c:" % (8 * each >> 20, 8 * each >> 20), said, re.M),
             "opened by %s: the summary says so, with the line" % how, said.splitlines())
        said = memshim("findings", path).said
        fact("imports_open" in said and "opened.c:" in said, "opened by %s: what is open in the end is a finding" % how, said.splitlines())


@case
def followed():
    """What was reserved at most is the pool's and what the driver made, on every screen, and no less than what was allocated."""
    sizes = r"(\d+\.\d) MiB"
    for more in ({}, {"MEMSHIM_MODE": "track"}):
        done = run("followed", **more)
        device = done.load()["devices"][0]
        fact(device["peak_held_bytes"] >= device["peak_live_bytes"] == 224 << 20 and
             device["peak_held_bytes"] >= device["peak_reserved_bytes"] + (164 << 20 if not more else 0) and
             device["held_bytes"] == device["reserved_bytes"] + device["followed_bytes"],
             "followed %s: the report has all that the program has of the device" % more, done.told() + [device])
        said = memshim("summary", done.report).said
        told = re.search("Peak +%s allocated.*; %s reserved at most" % (sizes, sizes), said)
        fact(bool(told) != bool(more) and (more or float(told.group(2)) >= float(told.group(1))),
             "followed %s: the summary reserves no less than it allocates" % more, said.splitlines())
        said = memshim("summary", "--all", done.report).said
        told = re.search(r"^  cuda 0 +%s +%s " % (sizes, sizes), said, re.M)
        fact(told and float(told.group(2)) >= float(told.group(1)), "followed %s: nor does its table" % more, said.splitlines()[:20])
        held_everywhere("followed %s" % more, done.report, device, done.load()["timeline"])


def held_everywhere(name, path, device, timeline):
    """Reserved is all that the program has of the device, whoever says it: a job, limits, series, the course of time."""
    held, job = device["peak_held_bytes"], os.path.join(TMP, "followed-job.json")
    memshim("merge", "-o", job, path)
    with open(job, encoding="utf-8") as file:
        rank = json.load(file)["ranks"][0]
    fact(rank["reserved_bytes"] == held and rank["devices"][0][-1] == held, name + ": a job reserves as much", [rank])
    for one in (path, job):
        rcs = [memshim("check", "--max-reserved", str(most), one).status for most in (held, held - 1)]
        fact(rcs == [0, 1], "%s: --max-reserved holds at that and fails below it, of %s" % (name, os.path.basename(one)), [rcs])
    series = memshim("export", "--format", "prometheus", "-o", "-", path).said
    told = {what: int(value) for what, value in re.findall(r"^memshim_device_(\w+)\{.*\} (\d+)$", series, re.M)}
    fact([told.get(what) for what in ("reserved_bytes", "peak_reserved_bytes", "pool_bytes", "peak_pool_bytes")] ==
         [device[key] for key in ("held_bytes", "peak_held_bytes", "reserved_bytes", "peak_reserved_bytes")],
         name + ": metrics have both, and the pool's by its name", [told])
    line = timeline["devices"][0]
    fact(max(line["reserved"]) == held and all(map(operator.ge, line["reserved"], line["live"])),
         name + ": at no time is less reserved than allocated", [line["live"][-8:], line["reserved"][-8:]])


@case
def contexts_together():
    """Contexts that begin together are in each other's figures: of one model of card each is as large as the least, the rest is told apart."""
    report, paths = run("kept", 1, 10, MEMSIM_CONTEXT="300M").load(), []
    for i, (taken, confidence) in enumerate(((2500, "inferred"), (300, "inferred"), (900, "inferred"), (350, "exact"))):
        report["run"]["pid"] = 100 + i
        report["contexts"][0].update(bytes=taken << 20, total_bytes=taken << 20, confidence=confidence)
        for row in report["balances"]:
            row.update(in_use_bytes=row["in_use_bytes"] + (taken << 20) - row["contexts"], contexts=taken << 20)
            row.pop("contexts_inferred", None)
            row.update({"contexts_inferred": taken << 20} if confidence == "inferred" else {})
        paths.append(os.path.join(TMP, "together-%d.json" % i))
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump(report, file)
    done = memshim("contexts", "--json", *paths)
    device = json.loads(done.said)["devices"][0]
    rows = [(row["bytes"] >> 20, row.get("others_bytes", 0) >> 20) for row in device["contexts"]]
    fact(rows == [(300, 2200), (300, 0), (300, 600), (350, 0)] and device["bytes"] == 1250 << 20 and device["others_bytes"] == 2800 << 20,
         "contexts of processes that start together count once", done.told())
    said = memshim("contexts", *paths).said
    fact("1.22 GiB taken for contexts" in said and "2.15 GiB more went meanwhile" in said, "contexts: the text tells others' apart", said.splitlines())
    contexts_labelled(paths)
    contexts_in_page(paths)
    contexts_unused(paths)
    contexts_merged(paths)


def contexts_labelled(paths):
    """Where nothing says how much of it is others', each screen says that some of it may be."""
    for path, told in ((paths[0], "at most 2.44 GiB contexts"), (paths[3], "+ 350.0 MiB contexts")):
        said = memshim("summary", path).said
        fact(told in said, "summary of one: " + told, said.splitlines())
    said = memshim("owners", paths[0]).said
    fact("(of contexts 2.44 GiB at most: others' that began meanwhile may be in it)" in said, "so do the terms of what is in use", said.splitlines())
    said = memshim("summary", *paths).said
    fact("at most 300.0 MiB contexts) + 0 B neighbours + 2.15 GiB unaccounted" in said, "summary of several: what others took is unaccounted", said.splitlines())
    fresh = run("kept", 1, 10, MEMSIM_CONTEXT="300M").load()
    rows = [(row["contexts"], row.get("contexts_inferred")) for row in fresh["balances"]]
    fact(rows and all(row == (300 << 20, 300 << 20) for row in rows), "a report says how much of it was inferred", rows)


def contexts_in_page(paths):
    """A page of several reports has the same figures, also of one that comes through a pipe and of a job."""
    page, job, wanted = os.path.join(TMP, "together.html"), os.path.join(TMP, "together-job.json"), [(300, 2200), (300, 0), (300, 600), (350, 0)]
    memshim("merge", "-f", "-o", job, *paths[1:])
    with open(paths[0], "rb") as first:
        done = subprocess.run([MEMSHIM, "html", "-f", "-o", page, "-", *paths[1:]], stdin=first, text=True, capture_output=True, check=False)
    heads = page_heads(page)
    rows = [(row["bytes"] >> 20, row.get("others_bytes", 0) >> 20) for head in heads for row in head["contexts"]]
    terms = [{(row["contexts"] >> 20, row["untracked"] >> 20) for row in head["balances"]} for head in heads]
    fact(rows == wanted and terms == [{row} for row in wanted], "a page of several reports tells others' contexts apart", [done.stderr, rows, terms])
    memshim("html", "-f", "-o", page, paths[0], job)
    rows = [(row["bytes"] >> 20, row.get("others_bytes", 0) >> 20) for row in page_heads(page)[0]["contexts"]]
    fact(rows == [(300, 2200)], "and knows what the processes of a job have", rows)
    memshim("html", "-f", "-o", page, paths[0])
    rows = [(row["bytes"] >> 20, row.get("others_bytes", 0) >> 20) for row in page_heads(page)[0]["contexts"]]
    fact(rows == [(2500, 0)], "one alone stays as it is", rows)


def page_heads(page):
    with open(page, encoding="utf-8") as file:
        return [page_format.unpack(block)[0] for block in page_format.Page(file.read()).blocks]


def contexts_unused(paths):
    """A finding about a context says the same figure."""
    unused = []
    for path in paths[:2]:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        report["devices"].append({**report["devices"][0], "index": 1, "live_bytes": 0, "live_count": 0})
        report["contexts"][0]["device"] = 1
        unused.append(path.replace("together", "unused"))
        with open(unused[-1], "w", encoding="utf-8") as file:
            json.dump(report, file)
    said = memshim("findings", *unused).said
    fact(said.count("which took 300.0 MiB, and nothing was allocated there") == 2, "so does the finding about one that nobody uses", said.splitlines())


def contexts_merged(paths):
    """A job report takes the least of its processes, however it was merged."""
    names = [os.path.join(TMP, name) for name in ("together-all.json", "together-a.json", "together-b.json", "together-ab.json")]
    for files, name in ((paths, names[0]), (paths[:1], names[1]), (paths[1:], names[2]), (names[1:3], names[3])):
        memshim("merge", "-f", "-o", name, *files)
    with open(names[0], "rb") as one, open(names[3], "rb") as other:
        texts = one.read(), other.read()
    job = json.loads(texts[0])
    context, terms = job["contexts"][0], [(row["contexts"] >> 20, row["untracked"] >> 20) for row in job["balances"]]
    fact((context["bytes"] >> 20, context.get("others_bytes", 0) >> 20) == (300, 2200) and set(terms) == {(300, 2200)},
         "a job's contexts are as large as the least, and the rest is untracked", [context, terms])
    fact(texts[0] == texts[1], "in any grouping", [len(text) for text in texts])
    fact(memshim("validate", names[0]).status == 0, "and its equations hold", memshim("validate", names[0]).told())


@case
def reset_free():
    """The driver ends the runtime's context: frees are refused as natively, of stream-ordered memory too, which outlives it."""
    for way in (0, 1, 2):
        native, done = run("reset_free", way, native=True), run("reset_free", way)
        fact(native.status == done.status == 0 and native.said == done.said and "free 1" in done.said,
             "reset_free %d: every status is the native one" % way, native.told() + done.told())


@case
def limited():
    """No file may grow, and standard error is one: what memshim cannot write raises no signal in the program."""
    for limit in (0, 100, 5000, 70000, 1000000):
        run_too = [] if hooklib.WATCHED else [((), (MEMSHIM, "run", "--sim", "--"))]
        for words, first in [((), ()), (("handled",), ()), *run_too]:
            environment = native_environment() if first else shim_environment(
                TMP + "/limited.json", MEMSHIM_LOG="debug", MEMSHIM_TRACE=TMP + "/limited.%p.trace")
            with open(TMP + "/limited.err", "w", encoding="utf-8") as errors:
                done = subprocess.run([*first, HERE + "/limited", *words], env=environment, text=True, stdout=subprocess.PIPE,
                                      stderr=errors, timeout=250, check=False, cwd=TMP,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            fact(done.returncode == 0 and done.stdout == ("waiting 1\nhandled 1\n" if words else "done\n"),
                 "limited%s: files of %d bytes at most%s" % (" handled" if words else "", limit, ", memshim run" if first else ""),
                 [done.returncode, done.stdout])


def storage(library):
    """Bytes of thread-local storage that a library has, or None where nobody says."""
    try:
        said = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    except OSError:
        return None
    row = re.search(r"^ +TLS .* 0x(\w+) R +0x\w+$", said, re.M)
    return int(row.group(1), 16) if row else 0


@case
def loaded():
    """The library is loaded when threads run already: under LD_AUDIT, late, and beside allocators with storage of their own."""
    library = os.environ["TEST_LIB"]
    if hooklib.WATCHED:
        skip("loaded", "a sanitizer's library cannot be loaded so")
        return
    with open(library, "rb") as file:
        checked = b"ms_lock_note_taken" in file.read()
    if checked:
        skip("thread-local storage", "this build checks locks")
    else:
        fact((storage(library) or 0) <= 512, "loaded: at most 512 bytes of thread-local storage", [storage(library)])
    audit = {"LD_AUDIT": HERE + "/audit.so"}
    native = run("loaded", native=True, **audit)
    for mode in ("pool", "track", "off"):
        done = run("loaded", MEMSHIM_MODE=mode, **audit)
        fact((done.status, done.said) == (native.status, native.said) and
             (mode == "off" or done.load()["leaks"][0]["count"] == 8), "loaded: under LD_AUDIT, MEMSHIM_MODE=" + mode, done.told())
    done = run("loaded", library, native=True)
    fact(done.status == 0 and "cannot" not in done.said, "loaded: by dlopen, with threads", done.told())
    for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
        if "cannot be preloaded" in run("loaded", native=True, LD_PRELOAD=name).said:
            skip("loaded: beside " + name, "is not here")
            continue
        for preloaded in (name + ":" + library, library + ":" + name):
            done = run("loaded", LD_PRELOAD=preloaded)
            fact(done.status == 0 and done.said == "failed 0\n" and done.load()["leaks"][0]["count"] == 8,
                 "loaded: beside " + preloaded.replace(library, "memshim"), done.told())


def copy_of_library(place, version):
    """A copy of the library in another folder, of another version if that is said."""
    os.makedirs(os.path.join(TMP, place))
    path = os.path.join(TMP, place, "libmemshim.so")
    with open(os.environ["TEST_LIB"], "rb") as file, open(path, "wb") as copy:
        content = file.read()
        copy.write(content.replace(b"0.9.0", version) if version else content)
    return path


@case
def crossed():
    """Two copies of the library in one process: the first acts, and the program is as with one."""
    if hooklib.WATCHED:
        skip("two copies", "a sanitizer's library cannot be preloaded twice")
        return
    library = os.environ["TEST_LIB"]
    one = run("crossed")
    fact(one.status == 0, "crossed: with one copy every call is right", one.told())
    for place, version in (("same", None), ("older", b"0.8.9")):
        copy = copy_of_library(place, version)
        for preloaded in (library + ":" + copy, copy + ":" + library):
            done = run("crossed", LD_PRELOAD=preloaded)
            report = done.load()
            fact((done.status, done.said) == (one.status, one.said) and len(report["leaks"]) == 1 and
                 report["leaks"][0]["bytes"] == 2000 and
                 any("stays inert: " + preloaded.split(":")[1] in line for line in report["diagnostics"]),
                 "crossed: with two, of which the first acts, and says so", done.told() + report["diagnostics"])
    environment = native_environment(LD_PRELOAD=copy)
    done = subprocess.run([MEMSHIM, "run", "--sim", "-f", "-o", TMP + "/run.json", "--", HERE + "/crossed"], env=environment,
                          text=True, capture_output=True, timeout=250, check=False)
    with open(TMP + "/run.json", encoding="utf-8") as file:
        report = json.load(file)
    fact(done.returncode == 0 and "LD_PRELOAD has %s, which is left out" % copy in done.stderr and
         not any("inert" in line for line in report["diagnostics"]), "memshim run leaves other copies out, and says so",
         [done.returncode, done.stderr, report["diagnostics"]])


@case
def neighbour():
    """What was freed and waited for is another process's, also where a loop was seen to ask for it again each time."""
    for times in (1, 4):
        for more in ({}, {"MEMSHIM_BACKING": "vmm"}):
            books = os.path.join(TMP, "books-%d" % runs)
            os.mkdir(books)
            done = run("neighbour", times, MEMSIM_MEMORY="8G", MEMSIM_LEDGER=books, **more)
            fact(done.status == 0 and (done.number("first"), done.number("then")) == (0, 0),
                 "another process gets its memory after %d rounds, %s" % (times, more), done.told())


@case
def after_free():
    """A GiB that was freed is not kept beside one of another kind: the device gives no more than natively."""
    for kind in ("handle", "ordered", "own_pool", "array", "context", "pitched", "larger"):
        native = run("after_free", kind, native=True)
        for more in ({}, {"MEMSHIM_BACKING": "vmm"}, {"MEMSHIM_PACK": "none"}, {"MEMSHIM_FREE": "strict"}):
            done = run("after_free", kind, **more)
            fact(done.status == native.status == 0 and done.number("at most") <= native.number("at most") + 34,
                 "%s after cudaFree, %s: no more of the device than natively" % (kind, more), native.told() + done.told())


@case
def threads_together():
    """Threads that grow at the same time take a tenth and 32 MiB more of the device than natively, at most."""
    for shape, threads in (("plain", 2), ("plain", 4), ("plain", 16), ("short", 8), ("large", 4), ("mixed", 8), ("grow", 8), ("turns", 8),
                           ("random", 16)):
        for _ in range(3):  # a machine that is at work on something else lets threads meet as it likes: the best of three counts
            native = run("../bench/together", shape, threads, native=True)
            done = run("../bench/together", shape, threads)
            least = max(native.number("given") or 0, native.number("live") or 0, done.number("live") or 0)
            within = done.status == native.status == 0 and done.number("given") <= 1.1 * least + 32
            if within:
                break
        fact(within, "%s by %d: at most a tenth and 32 MiB more than natively" % (shape, threads), native.told() + done.told())


@case
def pack_none():
    """Small blocks are packed by the driver where memshim packs nothing, and no memory is set aside that no block could use."""
    for more in ({"MEMSHIM_PACK": "none"}, {"MEMSHIM_IPC": "native"}, {"MEMSHIM_PACK": "none", "MEMSHIM_PREALLOC": "100%"}):
        for count, size in ((4096, 1000), (4096, 100000), (3, 100 << 20)):
            native = run("many", count, size, native=True, MEMSIM_MEMORY="1G")
            done = run("many", count, size, MEMSIM_MEMORY="1G", **more)
            fact(done.status == native.status == 0 and done.said == native.said,
                 "%d blocks of %d bytes, %s: as much of the device as natively" % (count, size, more), native.told() + done.told())
    warned = subprocess.run([HERE + "/many", "1", "3000000"], text=True, capture_output=True, timeout=250, check=False,
                            env=shim_environment("none", MEMSIM_COUNT="1", MEMSHIM_PACK="none", MEMSHIM_PREALLOC="1G")).stderr
    fact(warned.count("MEMSHIM_PREALLOC is left out") == 1, "what is left out is said once", [warned])


@case
def printed():
    """MEMSHIM_REPORT=- is standard output, and no file of that name."""
    done = run("crossed", MEMSHIM_REPORT="-")
    start = done.said.find("{")
    fact(done.status == 0 and json.loads(done.said[start:])["leaks"][0]["bytes"] == 2000 and not os.path.exists("-"),
         "MEMSHIM_REPORT=- prints the report", done.told()[:5])
    done = subprocess.run([MEMSHIM, "run", "--", "true"], env=dict(os.environ, MEMSHIM_REPORT="-"), text=True, capture_output=True,
                          timeout=250, check=False)
    fact(done.returncode == 2 and "give -o FILE" in done.stderr, "memshim run, which reads it, says what to give", [done.stderr])


@case
def sanitized():
    """A program of gcc's AddressSanitizer, which wants to be the first of all libraries."""
    path = TMP + "/sanitized"
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write('#include <stdio.h>\nint main(void) { return puts("ran") < 0 ? 1 : 3; }\n')
    command = os.environ["TEST_CC"].split() + ["-fsanitize=address", path + ".c", "-o", path]
    if hooklib.WATCHED or subprocess.run(command, capture_output=True, check=False).returncode != 0 or \
            subprocess.run([path], capture_output=True, check=False).returncode != 3:
        skip("a program of AddressSanitizer's", "none can be made here, or the library has one itself")
        return
    done = subprocess.run([MEMSHIM, "run", "--", path], text=True, capture_output=True, timeout=250, check=False, cwd=TMP)
    fact(done.returncode == 3 and done.stdout == "ran\n", "a program of AddressSanitizer's runs", [done.returncode, done.stderr])


wanted = sys.argv[1:]
for function in CASES:
    if not wanted or function.__name__ in wanted:
        function()
hooklib.plan(hooklib.number)
