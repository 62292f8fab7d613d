"""Puts each mistake of mutants.py and mutants_ledger.py into a copy of the tree, and says after how many schedules it is found.

Used by scripts/schedules --mutants. Copies lie in the build directory, one for each that runs at a time, and stay there, so that
the next run compiles little. What was found is kept in results.tsv beside them, by what the sources, the mistake and the way to
look for it were: a run that was cut off goes on where it was, and one that has nothing to do says what is known.
"""
import hashlib
import os
import queue
import re
import subprocess
import sys
import threading

import mutants
import mutants_ledger

PROGRAM, CRASH = "tests/schedules/schedules", "tests/schedules/crash"
OTHERS = ("build", "build-ci", "autom4te.cache", ".git")  # what is at the top and no source
SUBJECTS = ("src", "hooks", "tests/schedules", "tests/pool")  # what the answers depend on
MOST_SECONDS = 1800
WAYS = ("random", "pct", "weak", "every")
EVERY_MORE, PREEMPTIONS = 2, "3"  # of `every`, which makes those with few preemptions first, and has no seeds
NEVER = "—"
PAGE_BEGIN, PAGE_END = "<!-- %s: made by scripts/schedules --mutants --write -->\n", "<!-- end of %s -->\n"


class Mutant:
    """A mistake: where it is put, and how it is looked for. Programs that read what is another's by now are none for `weak`."""
    def __init__(self, entry, group, ways, reads_old=()):
        self.name, self.file, self.before, self.after, programs = entry[:5]
        self.programs, self.group = programs.split(), group
        self.ways = tuple(way for way in ways if way != "weak" or not set(self.programs) & set(reads_old))
        if group == "weak":  # shows in no sequentially consistent memory
            self.ways = tuple(way for way in self.ways if way != "every")
        self.kept = [(program, "%s by seed %s" % (rule, seed)) for program, rule, seed, mistake in mutants.KEPT if mistake == self.name]


def listed(top):
    reads_old = [name.decode() for _, text in programs_of(top) for name in re.findall(rb'\{"([a-z-]+)",[^}]*READS_OLD', text)]
    return ([Mutant(entry, entry[5], WAYS, reads_old) for entry in mutants.MUTANTS] +
            [Mutant(entry, "ledger", WAYS) for entry in mutants_ledger.SCHEDULES] +
            [Mutant(entry, "crash", ("crash",)) for entry in mutants_ledger.CRASHES])


def files_of(top, where=""):
    for entry in sorted(os.scandir(os.path.join(top, where)), key=lambda entry: entry.name):
        path = os.path.join(where, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if where or entry.name not in OTHERS:
                yield from files_of(top, path)
        elif entry.is_file():
            yield path


def read(*path):
    with open(os.path.join(*path), "rb") as source:
        return source.read()


def digest_of(top):
    """Of all that answers depend on but for the programs, of which each is in one file."""
    digest = hashlib.sha256()
    for path in (path for where in SUBJECTS for path in files_of(top, where)):
        if not path.endswith(".py") and not is_of_programs(path):
            digest.update(path.encode() + b"\0" + read(top, path))
    return digest


def is_of_programs(path):
    return re.match(r"tests/schedules/programs_.*\.c$", path) is not None


def programs_of(top):
    """(path, text) of the files that have programs."""
    return [(path, read(top, path)) for path in files_of(top, "tests/schedules") if is_of_programs(path)]


class Results:
    """What was found so far, in a file: a line for each program and way."""
    def __init__(self, top, path):
        self.path, self.rows, self.lock = path, {}, threading.Lock()
        self.sources, self.programs = digest_of(top), programs_of(top)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                self.rows = dict(line.rstrip("\n").split("\t") for line in lines)

    def key(self, mutant, program, way, options):
        digest = self.sources.copy()
        digest.update(repr((mutant.file, mutant.before, mutant.after)).encode())
        for path, text in self.programs:
            if ('"%s"' % program).encode() in text:
                digest.update(path.encode() + b"\0" + text)
        return " ".join((digest.hexdigest()[:24], mutant.name, program, way, str(options.count), str(options.seed or 1)))

    def put(self, key, answer):
        with self.lock, open(self.path, "a", encoding="utf-8") as lines:
            self.rows[key] = answer
            lines.write("%s\t%s\n" % (key, answer))


class Place:
    """A copy of the tree with a build of its own, in which one mistake is at a time."""
    def __init__(self, top, where, build):
        self.tree, self.directory, self.make = os.path.join(where, "tree"), os.path.join(where, "build"), build
        for path in files_of(top):
            self.write(path, read(top, path), os.stat(os.path.join(top, path)).st_mode)

    def write(self, path, text, mode=None):
        """Where it is there already it keeps its time."""
        target = os.path.join(self.tree, path)
        if os.path.exists(target) and read(target) == text:
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as copy:
            copy.write(text)
        if mode:
            os.chmod(target, mode)

    def look(self, program, way, options):
        """After how many schedules, or points, it is found; None if it is not."""
        words = [os.path.join(self.directory, CRASH if way == "crash" else PROGRAM), program, *([] if way == "crash" else [way.split()[0]])]
        count, seed = options.count, options.seed or 1
        if " by seed " in way:
            count, seed = 1, int(way.split()[-1])
        if way == "every":
            count, seed = count * EVERY_MORE, PREEMPTIONS
        status, said = run(words, count, seed)
        found = re.search(r"^found (?:after|at point|by seed) (\d+)", said, re.MULTILINE)
        if found:
            return found.group(1)
        return None if status in (0, 1) else deadly(words, count, seed)

    def put(self, mutant, text):
        before = mutant.before.encode()
        if text.count(before) != 1:
            sys.exit("scripts/schedules: mutant %s: what it replaces is there %d times" % (mutant.name, text.count(before)))
        self.write(mutant.file, text.replace(before, mutant.after.encode()))
        self.make(self.tree, self.directory, CONFIGURE_ARGS="")  # no warning stops a mistake


def run(words, count, seed):
    try:
        done = subprocess.run([*words, str(count), str(seed)], text=True, errors="replace", capture_output=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout


def deadly(words, high, seed):
    """The schedule in which the program itself dies, which what it had written then does not say."""
    low = 1
    while low < high:
        middle = (low + high) // 2
        if run(words, middle, seed)[0] in (0, 1):
            low = middle + 1
        else:
            high = middle
    return str(low)


def missing(mutant, results, options):
    """What is yet to be tried of it: (program, way). After a program by which it is found none is tried; what is kept is."""
    kept = [pair for pair in mutant.kept if results.rows.get(results.key(mutant, *pair, options)) is None]
    if kept:
        return kept
    for program in mutant.programs:
        answers = [results.rows.get(results.key(mutant, program, way, options)) for way in mutant.ways]
        if None in answers:
            return [(program, way) for way, answer in zip(mutant.ways, answers) if answer is None]
        if any(answer != NEVER for answer in answers):
            return []
    return []


def answers_of(mutant, results, options):
    """(program, an answer for each way): of the program that finds it, or of the last that does not."""
    rows = [(program, [results.rows.get(results.key(mutant, program, way, options), "") for way in mutant.ways]) for program in mutant.programs]
    return next((row for row in rows if any(answer not in (NEVER, "") for answer in row[1])), rows[-1])


def say(mutant, results, options):
    program, answers = answers_of(mutant, results, options)
    print("%-24s %-16s %s" % (mutant.name, program, ", ".join("%s: %s" % pair for pair in zip(mutant.ways, answers))), flush=True)


def try_one(place, mutant, results, options):
    """All that is missing of it, where it lies in the place."""
    text = read(place.tree, mutant.file)
    try:
        place.put(mutant, text)
        while missing(mutant, results, options):
            for program, way in missing(mutant, results, options):
                results.put(results.key(mutant, program, way, options), place.look(program, way, options) or NEVER)
    except SystemExit as end:
        print("%-24s does not build: %s" % (mutant.name, end), flush=True)
    finally:
        place.write(mutant.file, text)


def work(top, where, build, todo, results, options):
    place = None
    while True:
        try:
            mutant = todo.get_nowait()
        except queue.Empty:
            return
        if missing(mutant, results, options):
            place = place or Place(top, where, build)
            try_one(place, mutant, results, options)
        say(mutant, results, options)


def table(group, chosen, results, options):
    """As mutants.md has it."""
    ways = WAYS if group != "crash" else ("crash",)
    yield "| mutant | program | %s |\n|---|---|%s\n" % (" | ".join("`%s`" % way for way in (WAYS if group != "crash" else ("points",))),
                                                       "---|" * (len(WAYS) if group != "crash" else 1))
    for mutant in chosen:
        if mutant.group in GROUPS[group]:
            program, answers = answers_of(mutant, results, options)
            told = dict(zip(mutant.ways, answers))
            yield "| `%s` | `%s` | %s |\n" % (mutant.name, program, " | ".join(told.get(way, "") for way in ways))


GROUPS = {"pool": ("history", "plain", "weak"), "ledger": ("ledger",), "crash": ("crash",)}


def write_page(path, chosen, results, options):
    text = read(path).decode()
    for group in GROUPS:
        name = "mutants of " + {"pool": "the pool", "ledger": "the ledger", "crash": "what is left"}[group]
        begin, end = text.index(PAGE_BEGIN % name) + len(PAGE_BEGIN % name), text.index(PAGE_END % name)
        text = text[:begin] + "".join(table(group, chosen, results, options)) + text[end:]
    with open(path, "w", encoding="utf-8") as page:
        page.write(text)


def mutate(top, build_directory, build, options):
    """Whether a mistake was not found. `build` is what makes a tree in a directory."""
    where = os.path.join(build_directory, "mutants")
    os.makedirs(where, exist_ok=True)
    results, chosen, todo = Results(top, os.path.join(where, "results.tsv")), listed(top), queue.Queue()
    for name in options.names:
        if name not in [mutant.name for mutant in chosen]:
            sys.exit("scripts/schedules: there is no mutant %s" % name)
    chosen = [mutant for mutant in chosen if not options.names or mutant.name in options.names]
    for mutant in chosen:
        todo.put(mutant)
    workers = [threading.Thread(target=work, args=(top, os.path.join(where, str(number)), build, todo, results, options)) for number in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if options.write:
        write_page(os.path.join(top, "tests", "schedules", "mutants.md"), listed(top), results, options)
    unkept = ["%s %s (%s)" % (*pair, mutant.name) for mutant in chosen for pair in mutant.kept
              if results.rows.get(results.key(mutant, *pair, options), NEVER) == NEVER]
    print("%d kept schedules fail with their mistakes%s" % (sum(len(mutant.kept) for mutant in chosen) - len(unkept), "; not: " + ", ".join(unkept) if unkept else ""))
    not_found = [mutant.name for mutant in chosen if all(answer in (NEVER, "") for answer in answers_of(mutant, results, options)[1])]
    print("%d of %d found%s" % (len(chosen) - len(not_found), len(chosen), "; not: " + ", ".join(not_found) if not_found else ""))
    return bool(not_found or unkept)
