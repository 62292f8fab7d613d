#!/usr/bin/env python3
"""What `memshim metrics` answers, read by the tools that it is for: promtool, prometheus-client, and a real Prometheus that scrapes three programs for a minute
(TEST_SECONDS), one of which is killed meanwhile: what it stored is what their own books say. A server that does nothing is scraped beside it, so that a machine which is too busy
for any answer within a second is told from memshim's delay. Run by scripts/test-exports, which has the packages. Prints TAP; what is not on
this machine is skipped by name."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
TOP, BUILD = os.environ["top_srcdir"], os.environ["top_builddir"]
os.environ.update(TEST_LIB=os.path.join(BUILD, "libmemshim.so"), TEST_SIM=BUILD, TEST_SANITIZE="", TEST_CC="cc", MEMSHIM_DIR=os.environ["TEST_TMP"])
sys.path[:0] = [os.path.join(TOP, "tests", name) for name in ("ledger", "hooks")]
from hooklib import MEMSHIM, TMP, fact, plan, skip  # noqa: E402
from watched import Watched  # noqa: E402

SECONDS = int(os.environ.get("TEST_SECONDS", "60"))


def by_tools():
    """promtool has nothing to say; prometheus-client reads the same of both forms."""
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics
    text = subprocess.run([MEMSHIM, "metrics", "--textfile", "-"], capture_output=True, check=True).stdout.decode()
    families = {family.name for family in parser.text_string_to_metric_families(text)}
    fact(len(families) > 10 and "memshim_owner_live_bytes" in families, "prometheus-client reads the text file", sorted(families))
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        fact(done.returncode == 0 and not done.stdout + done.stderr, "promtool finds nothing to say", [done.stdout, done.stderr])
    else:
        skip("promtool", "is not here")
    return openmetrics


def free_port():
    """One that nobody has."""
    with socket.socket() as spare:
        spare.bind(("127.0.0.1", 0))
        return spare.getsockname()[1]


def asked(port, query, **more):
    """What Prometheus says to a query; None while it is not there yet."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?%s" % (port, urllib.parse.urlencode(dict(more, query=query))), timeout=10) as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return None


def resident(pid):
    """KiB that a process has in memory."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def stored(port, programs, killed_ns):
    """(what is wrong, how many samples were held against the books)."""
    wrong, held = [], 0
    window = "[%ds]" % (SECONDS + 30)
    series = {}
    for name in ("live_bytes", "peak_live_bytes", "allocations_total"):
        for row in asked(port, "memshim_device_%s%s" % (name, window)):
            for at, value in row["values"]:
                series.setdefault((int(row["metric"]["pid"]), at), {})[name] = int(value)
    for (pid, at), figures in sorted(series.items()):
        program, now = next(program for program in programs if program.pid == pid), int(at * 1e9)
        # Figures are up to a second old, and as much older as a look took.
        held += 1
        if not program.says((figures["live_bytes"], figures["peak_live_bytes"], figures["allocations_total"]), now - 3000000000, now + 1000000000):
            wrong.append("%d at %.3f: %s" % (pid, at, figures))
        if pid == programs[0].pid and now > killed_ns + 3000000000:
            wrong.append("%d was killed" % pid)
    return wrong, held


IDLE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(b"nothing 1\\n")
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
server.handle_error = lambda *words: None
print(server.server_port, flush=True)
server.serve_forever()
"""


def scrapes(port):
    """{job: [(begin, end, answered)]} of all scrapes."""
    found, window = {}, "[%ds]" % (SECONDS + 30)
    for row in asked(port, "up" + window):
        found[row["metric"]["job"]] = {at: [at, at, value == "1"] for at, value in row["values"]}
    for row in asked(port, "scrape_duration_seconds" + window):
        for at, took in row["values"]:
            found[row["metric"]["job"]][at][1] += float(took)
    return {job: sorted(of.values()) for job, of in found.items()}


def unanswered(port):
    """(how many scrapes there were, those that were not answered although the server that does nothing answered its own at that time at once)."""
    of = scrapes(port)
    held_up = [(begin, end) for begin, end, _ in of["idle"] if end - begin > 0.5]
    return len(of["memshim"]), [(begin, end) for begin, end, answered in of["memshim"] if not answered and not any(begin < late and early < end for early, late in held_up)]


def by_prometheus(programs, server, port):
    """Scrapes each second."""
    own, idle = free_port(), subprocess.Popen([sys.executable, "-c", IDLE], stdout=subprocess.PIPE, text=True)
    targets = "".join("  - {job_name: %s, static_configs: [{targets: ['127.0.0.1:%d']}]}\n" % row for row in (("memshim", port), ("idle", int(idle.stdout.readline()))))
    with open(os.path.join(TMP, "prometheus.yml"), "w", encoding="utf-8") as file:
        file.write("global: {scrape_interval: 1s}\nscrape_configs:\n" + targets)
    prometheus = subprocess.Popen(["prometheus", "--config.file", file.name, "--storage.tsdb.path", os.path.join(TMP, "prometheus"), "--web.listen-address", "127.0.0.1:%d" % own],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while len(asked(own, "up") or []) < 2:
            assert prometheus.poll() is None
            time.sleep(0.2)
        before = resident(server.pid)
        time.sleep(SECONDS / 2)
        programs[0].kill()
        killed_ns = time.time_ns()
        time.sleep(SECONDS / 2)
        count, missed = unanswered(own)
        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/targets" % own, timeout=10) as answer:
            errors = answer.read().decode()
        wrong, held = stored(own, programs, killed_ns)
        after = resident(server.pid)
    finally:
        prometheus.terminate()
        prometheus.wait(60)
        idle.kill()
        idle.wait()
    fact(count > SECONDS // 4 and not missed, "each of %d scrapes of Prometheus is answered" % count, [missed, errors])
    fact(not wrong and held > 0, "its %d samples are what the programs' books say" % held, wrong)
    fact(after < before + 1024, "and the memory of memshim metrics stays (%d KiB, %d at the end)" % (before, after), [])


def main():
    """Its facts."""
    os.chdir(TMP)
    programs = []
    server = subprocess.Popen([MEMSHIM, "metrics", "--listen", "0"], stderr=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)/metrics", server.stderr.readline()).group(1))
        for seed in (1, 2, 3):
            programs.append(Watched(seed, RANK=str(seed)))
        openmetrics = by_tools()
        request = urllib.request.Request("http://127.0.0.1:%d/metrics" % port, headers={"Accept": "application/openmetrics-text"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            families = {family.name: family for family in openmetrics.text_string_to_metric_families(answer.read().decode())}
        ranks = {sample.labels["rank"] for sample in families["memshim_device_live_bytes"].samples}
        fact(ranks == {"1", "2", "3"} and families["memshim_device_allocations"].type == "counter", "prometheus-client reads OpenMetrics over HTTP", [ranks])
        if shutil.which("prometheus"):
            by_prometheus(programs, server, port)
            plan(6)
        else:
            skip("Prometheus", "is not here")
            plan(4)
    finally:
        server.kill()
        for program in programs:
            program.kill()


if __name__ == "__main__":
    main()
