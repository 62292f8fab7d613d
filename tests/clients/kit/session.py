"""A session: clients installed, played and told of, several at a time, one after the other in the order of the table. Used by scripts/test-clients and tests/clients/small.py."""
import concurrent.futures
import os
import shutil
import traceback

from . import checkout, install, play, run, suite


class Result:
    """What came of a client: facts, or why it was not run."""

    def __init__(self, client):
        self.client, self.facts, self.figures, self.suites, self.measured = client, [], 0, [], []
        self.skipped = None
        self.version = self.origin = ""

    def green(self):
        """Whether it was run, and all holds."""
        return self.skipped is None and bool(self.facts) and all(fact.holds for fact in self.facts)


def version(packages, package):
    """The version of a package, by the name of its directory of facts."""
    wanted = package.lower().replace("-", "_")
    for entry in sorted(os.listdir(packages)):
        if entry.endswith(".dist-info"):
            name, number = entry[: -len(".dist-info")].rsplit("-", 1)
            if name.lower().replace("-", "_") == wanted:
                return number
    return ""


def one(client, build, temporary, suites, seconds, checkouts):
    """Everything about a client."""
    result = Result(client)
    try:
        found = checkout.find(client, checkouts) if client.checkout else None
        interpreter = install.install(client.requirements, seconds)
    except install.Missing as missing:
        result.skipped = "%s%s" % (missing, ": " + missing.said.strip().splitlines()[-1] if missing.said.strip() else "")
        return result
    place = os.path.join(temporary, client.name)
    os.makedirs(place)
    try:
        bench = run.Bench(build, interpreter, install.CACHE, place)
        result.version = version(bench.packages(), client.package)
        played = play.play(bench, client)
        result.facts, result.figures, result.measured = played.facts, played.figures, played.measured
        if suites and client.suite:
            result.origin = found.origin if found else ""
            result.suites, facts = suite.play(bench, client, checkout=found)
            result.facts += facts
    except Exception as error:  # a mistake of the runner's is a failure of this client, not of all
        result.facts.append(play.Fact(False, "it can be run", [repr(error), *traceback.format_exc().splitlines()[-4:]]))
    if result.green() and not os.environ.get("TEST_KEEP"):
        shutil.rmtree(place, ignore_errors=True)
    return result


class Tap:
    """TAP on standard output."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def line(self, holds, name, details=(), reason=None):
        """A fact."""
        number = self.passed + self.failed + self.skipped + 1
        self.skipped += reason is not None
        self.passed += reason is None and holds
        self.failed += reason is None and not holds
        print("%s %d - %s%s" % ("ok" if holds else "not ok", number, name, " # SKIP " + reason if reason else ""), flush=True)
        for detail in list(details)[:40]:
            print("#   %s" % detail, flush=True)

    def tell(self, result):
        """All facts of a client."""
        if result.skipped is not None:
            self.line(True, result.client.name, reason=result.skipped)
        for fact in result.facts:
            self.line(fact.holds, "%s: %s" % (result.client.name, fact.name), fact.details)

    def plan(self):
        """Last."""
        print("1..%d" % (self.passed + self.failed + self.skipped), flush=True)


def whole(clients, build, temporary, tap, suites=False, seconds=3600, workers=None, checkouts=None):
    """Plays them; the results, in order. checkouts: client -> directory, that the user named."""
    with concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        results = []
        for future in [pool.submit(one, client, build, temporary, suites, seconds, checkouts or {}) for client in clients]:
            results.append(future.result())
            tap.tell(results[-1])
    return results
